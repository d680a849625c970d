#include "runtime/comm/rendezvous/membership/membership_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tutti::comm {

MembershipState::MembershipState(int rank, int size, absl::Duration peer_timeout,
                                 absl::Duration now)
    : rank_(rank),
      size_(size),
      peer_timeout_(peer_timeout),
      beat_(peer_timeout / 8),
      progress_(size),
      heard_(size, now),
      gone_(size, false),
      next_beat_(now),
      last_tick_(now) {}

void MembershipState::Miss() {
  if (pair_.has_value()) pair_->missed = true;
}

void MembershipState::End() {
  if (pair_.has_value()) return pair_.reset();
  Progress& own = progress_[rank_];
  own.finished = own.begun;
  if (queried_.has_value() && own.finished >= *queried_) {
    queried_.reset();
    Say(0, own);
  }
}

bool MembershipState::AnyLost() const {
  return std::any_of(departures_.begin(), departures_.end(),
                     [](const Departure& departure) { return !departure.clean; });
}

void MembershipState::SayToAll(const Message& message) {
  for (int other = judge() ? 1 : 0; other < (judge() ? size_ : 1); ++other) {
    if (!gone_[other]) Say(other, message);
  }
}

void MembershipState::Record(Departure departure) {
  // The first loss is the cause; those after it are consequences and stay unsaid.
  if (departure.clean || !AnyLost()) {
    departures_.push_back(departure);
    if (judge()) SayToAll(departure);  // a late rank is told too
  }
  gone_[departure.rank] = departure.rank != rank_;
}

void MembershipState::Declare(int lost, absl::StatusCode code, absl::string_view text) {
  Record({.rank = lost, .code = code, .text = std::string(text)});
}

void MembershipState::ReportFailure(int suspect, Reason reason, absl::Duration now) {
  if (pair_.has_value()) {
    if (reason == Reason::kLate) reason = Reason::kPeerLate;
    if (judge() && gone_[suspect]) return;  // in good order: its departure is the error
  }
  if (!judge()) return Say(0, FailureReport{suspect, reason});
  if (reason != Reason::kClosed) return Inquire(rank_, suspect, reason, now);
  Declare(suspect, absl::StatusCode::kUnavailable, "connection closed");
}

void MembershipState::AnnounceLeaving(absl::Duration now) {
  const uint64_t finished = progress_[rank_].finished;
  if (judge()) return SayToAll(Query{finished});
  Say(0, LeaveNotice{finished});
}

bool MembershipState::MayLeave() const {
  if (!judge()) return confirmed_ || gone_[0];
  if (AnyLost()) return true;
  for (int other = 1; other < size_; ++other) {
    if (!gone_[other] && progress_[other].finished < progress_[0].finished) return false;
  }
  return true;
}

void MembershipState::Leave() {
  if (!judge()) return;
  SayToAll(Departure{.rank = 0, .clean = true, .finished = progress_[0].finished, .text = "left"});
}

void MembershipState::LeaveToReform() {
  const uint64_t finished = progress_[rank_].finished;
  if (!judge()) return Say(0, LeaveNotice{finished, true});
  SayToAll(
      Departure{.rank = 0, .clean = true, .finished = finished, .text = "left", .reforming = true});
}

std::vector<int> MembershipState::Lost() const {
  std::vector<int> lost;
  for (int rank = 0; rank < size_; ++rank) {
    const bool left = std::any_of(
        departures_.begin(), departures_.end(),
        [rank](const Departure& departure) { return departure.rank == rank && departure.clean; });
    if (gone_[rank] && !left) lost.push_back(rank);
  }
  return lost;
}

void MembershipState::OnMessage(int from, const Message& message, absl::Duration now) {
  if (gone_[from]) return;
  heard_[from] = now;
  if (const Progress* progress = std::get_if<Progress>(&message)) OnProgress(from, *progress, now);
  if (judge()) {
    OnMessageToJudge(from, message, now);
  } else {
    OnMessageFromJudge(message);
  }
}

void MembershipState::OnMessageToJudge(int from, const Message& message, absl::Duration now) {
  if (const auto* report = std::get_if<FailureReport>(&message)) {
    const int suspect = report->rank;
    if (suspect >= size_ || suspect == from) return;
    if (report->reason != Reason::kClosed) {
      return Inquire(from, suspect, report->reason, now);
    }
    // A rank that left in good order and one that is lost already have been told to all.
    if (!gone_[suspect]) Declare(suspect, absl::StatusCode::kUnavailable, "connection closed");
  } else if (const auto* notice = std::get_if<LeaveNotice>(&message)) {
    Say(from, LeaveAck{});
    Record({.rank = from,
            .clean = true,
            .finished = notice->finished,
            .text = "left",
            .reforming = notice->reforming});
  }
}

void MembershipState::OnMessageFromJudge(const Message& message) {
  if (const auto* query = std::get_if<Query>(&message)) {
    Progress own = progress_[rank_];
    own.answer = true;
    Say(0, own);
    if (own.finished < query->until) queried_ = query->until;
  } else if (const auto* departure = std::get_if<Departure>(&message)) {
    if (departure->rank < size_) Record(*departure);
  } else if (std::holds_alternative<LeaveAck>(message)) {
    confirmed_ = true;
  }
}

void MembershipState::OnClosed(int from) {
  if (gone_[from]) return;
  Declare(from, absl::StatusCode::kUnavailable, "connection closed");
}

void MembershipState::OnProgress(int from, const Progress& progress, absl::Duration now) {
  progress_[from] = progress;
  if (!progress.answer || !inquiry_.has_value()) return;
  inquiry_->silent.erase(from);
  if (inquiry_->silent.empty()) Conclude();
}

void MembershipState::Inquire(int reporter, int suspect, Reason reason, absl::Duration now) {
  if (inquiry_.has_value() || AnyLost()) return;
  inquiry_ = Inquiry{reporter, suspect, reason == Reason::kPeerLate, now + beat_, {}};
  for (int other = 1; other < size_; ++other) {
    if (!gone_[other]) inquiry_->silent.insert(other);
  }
  SayToAll(Query{});
  if (inquiry_->silent.empty()) Conclude();
}

// Every rank takes part in every collective, so the one to blame is the one that does not answer,
// or else the one that is furthest behind; only when all are in the same collective is it the one
// that the reporter waited for. (In an exchange of two it always is.)
void MembershipState::Conclude() {
  const Inquiry inquiry = *std::exchange(inquiry_, std::nullopt);
  int blamed = inquiry.suspect;
  absl::string_view what = "was too slow";
  if (!inquiry.silent.empty()) {
    if (inquiry.silent.count(blamed) == 0) blamed = *inquiry.silent.begin();
    what = "does not answer";
  } else if (!inquiry.pair) {
    for (int other = 0; other < size_; ++other) {
      if (gone_[other] || progress_[other].begun >= progress_[inquiry.reporter].begun) continue;
      if (what == "has not begun it" && progress_[other].begun >= progress_[blamed].begun) continue;
      blamed = other;
      what = "has not begun it";
    }
  }
  Declare(blamed, absl::StatusCode::kDeadlineExceeded,
          absl::StrCat(what, " at the deadline of rank ", inquiry.reporter));
}

void MembershipState::ForgiveOwnPause(absl::Duration now) {
  // Whoever was stopped itself (SIGSTOP, a suspended machine) has not listened: that says nothing
  // about the others.
  if (now - last_tick_ > beat_ * 2) std::fill(heard_.begin(), heard_.end(), now);
  last_tick_ = now;
}

void MembershipState::OnTick(absl::Duration now) {
  ForgiveOwnPause(now);
  if (now >= next_beat_) {
    next_beat_ = now + beat_;
    SayToAll(progress_[rank_]);
  }
  if (inquiry_.has_value() && now >= inquiry_->until) Conclude();
  for (int other = 0; other < (judge() ? size_ : 1); ++other) {
    if (other == rank_ || gone_[other] || now - heard_[other] < peer_timeout_) continue;
    Declare(other, absl::StatusCode::kUnavailable,
            absl::StrCat("silent for ", absl::FormatDuration(peer_timeout_)));
  }
}

absl::Duration MembershipState::NextTick() const {
  absl::Duration next = next_beat_;
  if (inquiry_.has_value()) next = std::min(next, inquiry_->until);
  for (int other = 0; other < (judge() ? size_ : 1); ++other) {
    if (other != rank_ && !gone_[other]) next = std::min(next, heard_[other] + peer_timeout_);
  }
  return next;
}

std::optional<Departure> MembershipState::Ending() const {
  const uint64_t current = InCollective() ? begun() : begun() + 1;
  for (const Departure& departure : departures_) {
    if (!departure.clean) return departure;
    const bool needed = pair_.has_value() ? pair_->missed && pair_->peer == departure.rank
                                          : departure.finished < current;
    if (needed) return departure;
  }
  return std::nullopt;
}

}  // namespace tutti::comm
