#include "runtime/comm/rendezvous/membership/membership.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "runtime/comm/lost_rank.h"

namespace tutti::comm {
namespace {

void Signal(const base::UniqueFd& event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof(one));
}

bool IsParting(const Message& message, int from) {
  const LeaveNotice* const notice = std::get_if<LeaveNotice>(&message);
  const Departure* const departure = std::get_if<Departure>(&message);
  return (notice != nullptr && notice->reforming) ||
         (departure != nullptr && departure->rank == from && departure->reforming);
}

constexpr size_t kMostUnsent = 64 << 10;  // with so much before them, beats are left out
constexpr absl::Duration kDeliveryMayEnd = absl::Milliseconds(1);

// A beat is said again. Everything else is said once, however much lies before it.
bool IsBeat(const Message& message) {
  const Progress* const progress = std::get_if<Progress>(&message);
  return progress != nullptr && !progress->answer;
}

}  // namespace

struct Membership::Link {
  BufferedConnection line;
  bool heard = false;  // the other side's membership has spoken
  bool left = false;   // and has said that it leaves to vote
  BufferedConnection::End end = BufferedConnection::End::kOpen;
};

Membership::Membership(int rank, int size, std::vector<base::UniqueFd> controls,
                       absl::Duration peer_timeout)
    : rank_(rank),
      peer_timeout_(peer_timeout),
      ended_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      state_(rank, size, peer_timeout, base::SteadyNow()) {
  for (base::UniqueFd& fd : controls) {
    links_.push_back(std::make_unique<Link>());
    links_.back()->line = BufferedConnection(std::move(fd));
  }
  thread_ = std::thread([this] { Run(); });
}

Membership::~Membership() {
  {
    Lock lock(mutex_);
    if (!parted_) {
      state_.AnnounceLeaving(base::SteadyNow());
      Settle();
      Await(lock, peer_timeout_, [this] { return state_.MayLeave() || ended(); });
      state_.Leave();
      Settle();
    }
    stopping_ = true;
  }
  Signal(wake_fd_);
  thread_.join();
}

template <typename Condition>
void Membership::Await(Lock& lock, absl::Duration patience, const Condition& condition) {
  changed_.wait_until(lock, base::Deadline::After(patience).time_point(), condition);
}

absl::Status Membership::Begin(const char* what) {
  Lock lock(mutex_);
  what_ = what;
  if (const auto ending = state_.Ending()) {
    Settle();
    return Error(*ending);
  }
  state_.Begin();
  return absl::OkStatus();
}

absl::Status Membership::BeginPair(const char* what, int peer, bool connected) {
  Lock lock(mutex_);
  what_ = what;
  state_.BeginPair(peer, connected);
  const auto ending = state_.Ending();
  if (!ending.has_value()) return absl::OkStatus();
  state_.End();
  Settle();
  return Error(*ending);
}

void Membership::End() {
  Lock lock(mutex_);
  state_.End();
  Flush();
}

absl::Status Membership::LeaveToReform(const std::vector<bool>& within_host) {
  Lock lock(mutex_);
  if (!std::exchange(parted_, true)) {
    state_.LeaveToReform();
    Settle();
  }
  const auto deadline = base::Deadline::After(peer_timeout_);
  for (size_t rank = 0; rank < links_.size(); ++rank) {
    const BufferedConnection& line = links_[rank]->line;
    if (!within_host[rank]) {
      // What could not be handed to the system may be lost when this process ends: its end shall
      // then not look like one in good order.
      const linger reset = {1, 0};
      if (line.valid() && line.unsent() > 0) {
        ::setsockopt(line.fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
      }
      continue;
    }
    while (line.valid() && !line.IsDelivered()) {
      if (deadline.Expired()) {
        return absl::FailedPreconditionError(absl::StrCat(
            "rank ", rank, " does not take in that this rank leaves to re-form the group"));
      }
      Await(lock, kDeliveryMayEnd, [&] { return !line.valid(); });
    }
  }
  return absl::OkStatus();
}

void Membership::NotifyAtEnd(Notifier* notifier) {
  const Lock lock(mutex_);
  notifier_ = notifier;
  if (notifier_ != nullptr && ended()) notifier_->Notify();
}

std::vector<int> Membership::Lost() {
  const Lock lock(mutex_);
  return state_.Lost();
}

std::vector<BufferedConnection::End> Membership::SeenToEnd() {
  const Lock lock(mutex_);
  std::vector<BufferedConnection::End> ends(links_.size(), BufferedConnection::End::kOpen);
  for (size_t rank = 0; rank < links_.size(); ++rank) {
    const Link& link = *links_[rank];
    if (link.heard && !link.left) ends[rank] = link.end;
  }
  return ends;
}

absl::Status Membership::CheckWithin(absl::Duration patience) {
  Lock lock(mutex_);
  Await(lock, patience, [this] { return state_.Ending().has_value(); });
  const auto ending = state_.Ending();
  return ending.has_value() ? Error(*ending) : absl::OkStatus();
}

absl::Status Membership::ReportFailure(int suspect, Reason reason) {
  Lock lock(mutex_);
  state_.Miss();
  if (!state_.Ending().has_value()) {
    if (rank_ != 0 && state_.gone(0)) {
      state_.Declare(suspect, absl::StatusCode::kUnavailable, "connection closed");
    } else {
      state_.ReportFailure(suspect, reason, base::SteadyNow());
    }
    Settle();
    Signal(wake_fd_);  // the thread's next tick may have become earlier
    Await(lock, peer_timeout_ / 4, [this] { return state_.Ending().has_value(); });
  }
  if (!state_.Ending().has_value()) {
    state_.Declare(rank_ == 0 ? suspect : 0, absl::StatusCode::kDeadlineExceeded,
                   "does not answer");
    Settle();
  }
  return Error(*state_.Ending());
}

absl::Status Membership::Error(const Departure& departure) const {
  const std::string when = absl::StrCat(state_.Busy() ? "during " : "before ", what_);
  std::string text;
  if (departure.clean && departure.reforming) {
    text = absl::StrCat("left to re-form the group (", when, ")");
  } else if (departure.clean) {
    text = absl::StrCat("left the group before the others were done (", when, ")");
  } else if (departure.code == absl::StatusCode::kDeadlineExceeded) {
    text = absl::StrCat("is late: it ", departure.text, " (", when, ")");
  } else {
    text = absl::StrCat("left the group (", departure.text, ") ", when);
  }
  return ErrorAboutRank(departure.rank, departure.code,
                        absl::StrCat("rank ", departure.rank, " ", text));
}

// After every change of the state: what it wants to say goes out, and an end is made known.
void Membership::Settle() {
  Flush();
  changed_.notify_all();
  NoteEnd();
  if (ended() && notifier_ != nullptr) notifier_->Notify();
}

void Membership::NoteEnd() {
  const auto ending = state_.Ending();
  // Outside a collective a clean departure is not yet an end: there may be no further collective.
  if (!ending.has_value() || (ending->clean && !state_.Busy())) return;
  if (ended_.exchange(true, std::memory_order_acq_rel)) return;
  payloads_before_end_ = payloads_.size();
  Signal(ended_fd_);
}

void Membership::Flush() {
  for (auto& [to, message] : state_.TakeOutgoing()) {
    Link& link = *links_[to];
    if (link.line.unsent() < kMostUnsent || !IsBeat(message)) link.line.Say(message);
  }
  for (auto& link : links_) link->line.Push();
}

void Membership::ReadFrom(int from) {
  Link& link = *links_[from];
  const BufferedConnection::End end = link.line.Read();
  while (true) {
    absl::StatusOr<Message> message = link.line.Next(kLongestPayload + 8);
    if (message.ok()) {
      link.heard = true;
      link.left |= IsParting(*message, from);
      state_.OnMessage(from, *message, base::SteadyNow());
      ControlPayload* const payload = std::get_if<ControlPayload>(&*message);
      if (payload == nullptr) continue;
      NoteEnd();
      payloads_.emplace_back(from, std::move(payload->payload));
    } else if (absl::IsNotFound(message.status())) {
      break;
    } else {
      state_.Declare(from, absl::StatusCode::kUnavailable, "it sent what is no message");
      link.line.Close();
      return;
    }
  }
  if (end == BufferedConnection::End::kOpen) return;
  link.end = end;
  link.line.Close();
  state_.OnClosed(from);
}

// One wait for the others, the caller and the clock.
void Membership::Listen(Lock& lock) {
  std::vector<pollfd> polled = {{wake_fd_.get(), POLLIN, 0}};
  std::vector<int> ranks = {-1};
  for (size_t r = 0; r < links_.size(); ++r) {
    const Link& link = *links_[r];
    if (!link.line.valid()) continue;
    polled.push_back({link.line.fd(), link.line.events(), 0});
    ranks.push_back(static_cast<int>(r));
  }
  const absl::Duration wait = std::max(absl::ZeroDuration(), state_.NextTick() - base::SteadyNow());
  lock.unlock();
  ::poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
  lock.lock();
  uint64_t drained;
  if (polled[0].revents != 0 && ::read(wake_fd_.get(), &drained, sizeof(drained)) < 0) return;
  for (size_t i = 1; i < polled.size(); ++i) {
    if (polled[i].revents != 0) ReadFrom(ranks[i]);
  }
}

void Membership::Run() {
  Lock lock(mutex_);
  while (!stopping_) {
    Listen(lock);
    if (newcomers_ != nullptr) state_.SetWaiting(newcomers_->load());
    state_.OnTick(base::SteadyNow());
    Settle();
    Deliver(lock);
  }
}

void Membership::Post(int to, std::string payload) {
  Lock lock(mutex_);
  Link& link = *links_[to];
  if (!link.line.valid()) return;
  link.line.Say(ControlPayload{std::move(payload)});
  link.line.Push();
  if (link.line.unsent() > 0) Signal(wake_fd_);  // the thread has to wait for room too
}

void Membership::SetListener(Listener* listener) {
  {
    const Lock lock(listener_mutex_);
    listener_ = listener;
    told_of_end_ = false;
    listening_ = listener != nullptr;
  }
  Signal(wake_fd_);
}

void Membership::ReportNewcomers(std::shared_ptr<const std::atomic<int>> waiting) {
  const Lock lock(mutex_);
  newcomers_ = std::move(waiting);
}

int Membership::waiting() {
  const Lock lock(mutex_);
  return state_.waiting();
}

absl::Duration Membership::SilenceOf(int rank) {
  const Lock lock(mutex_);
  return base::SteadyNow() - state_.heard(rank);
}

// In the order in which it came: what is said after a loss may be its consequence ("rank 0 has shut
// down").
void Membership::Deliver(Lock& lock) {
  if (!listening_ || (payloads_.empty() && (!ended() || told_of_end_))) return;
  const auto payloads = std::exchange(payloads_, {});
  const size_t before_end = ended() ? std::exchange(payloads_before_end_, 0) : payloads.size();
  const auto ending = ended() ? state_.Ending() : std::nullopt;
  const absl::Status end = ending.has_value() ? Error(*ending) : absl::OkStatus();
  lock.unlock();
  {
    const Lock listening(listener_mutex_);
    if (listener_ != nullptr) {
      const auto deliver = [&](size_t first, size_t last) {
        for (size_t i = first; i < last; ++i) {
          listener_->OnPayload(payloads[i].first, payloads[i].second);
        }
      };
      deliver(0, before_end);
      if (!end.ok() && !told_of_end_.exchange(true)) listener_->OnEnded(end);
      deliver(before_end, payloads.size());
    }
  }
  lock.lock();
}

}  // namespace tutti::comm
