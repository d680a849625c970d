#include "runtime/comm/rendezvous/membership.h"

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

absl::Duration Now() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

void Ring(const base::UniqueFd& event) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof(one));
}

constexpr size_t kMostUnsent = 64 << 10;  // what a rank that does not read is told at most

}  // namespace

// One connection, with what has come but is no whole message yet and what could not be sent yet.
struct Membership::Link {
  base::UniqueFd fd;
  std::string incoming;
  std::string unsent;

  // False when the other side is gone.
  bool Read() {
    char block[4096];
    while (true) {
      const ssize_t n = ::recv(fd.get(), block, sizeof(block), MSG_DONTWAIT);
      if (n > 0) {
        incoming.append(block, static_cast<size_t>(n));
      } else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
        return false;
      } else if (errno == EAGAIN) {
        return true;
      }
    }
  }

  // The next whole message; NotFound if there is none yet.
  absl::StatusOr<Message> Next() {
    if (incoming.size() < 4) return absl::NotFoundError("");
    uint32_t length = 0;
    for (int i = 3; i >= 0; --i) length = length << 8 | static_cast<uint8_t>(incoming[i]);
    if (length > kLongestParcel + 8) return absl::InvalidArgumentError("message too long");
    if (incoming.size() < 4 + length) return absl::NotFoundError("");
    absl::StatusOr<Message> message = comm::Read(absl::string_view(incoming).substr(4, length));
    incoming.erase(0, 4 + length);
    return message;
  }

  void Push() {
    while (fd.valid() && !unsent.empty()) {
      const ssize_t n = ::send(fd.get(), unsent.data(), unsent.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;  // full: later; gone: reading will say so
      unsent.erase(0, static_cast<size_t>(n));
    }
  }
};

Membership::Membership(int rank, int size, std::vector<base::UniqueFd> controls,
                       absl::Duration peer_timeout)
    : rank_(rank),
      peer_timeout_(peer_timeout),
      ended_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      roll_(rank, size, peer_timeout, Now()) {
  for (base::UniqueFd& fd : controls) {
    links_.push_back(std::make_unique<Link>());
    links_.back()->fd = std::move(fd);
  }
  thread_ = std::thread([this] { Run(); });
}

Membership::~Membership() {
  {
    Lock lock(mutex_);
    roll_.AnnounceLeaving(Now());
    Settle();
    Await(lock, peer_timeout_, [this] { return roll_.MayLeave() || ended(); });
    roll_.Leave();
    Settle();
    stopping_ = true;
  }
  Ring(wake_fd_);
  thread_.join();
}

template <typename Condition>
void Membership::Await(Lock& lock, absl::Duration patience, const Condition& condition) {
  changed_.wait_until(lock, base::Deadline::After(patience).time_point(), condition);
}

absl::Status Membership::Begin(const char* what) {
  Lock lock(mutex_);
  what_ = what;
  if (const auto ending = roll_.Ending()) {
    Settle();
    return Error(*ending);
  }
  roll_.Begin();
  return absl::OkStatus();
}

absl::Status Membership::BeginPair(const char* what, int peer, bool connected) {
  Lock lock(mutex_);
  what_ = what;
  roll_.BeginPair(peer, connected);
  const auto ending = roll_.Ending();
  if (!ending.has_value()) return absl::OkStatus();
  roll_.End();
  Settle();
  return Error(*ending);
}

void Membership::End() {
  Lock lock(mutex_);
  roll_.End();
  Flush();
}

absl::Status Membership::CheckWithin(absl::Duration patience) {
  Lock lock(mutex_);
  Await(lock, patience, [this] { return roll_.Ending().has_value(); });
  const auto ending = roll_.Ending();
  return ending.has_value() ? Error(*ending) : absl::OkStatus();
}

absl::Status Membership::Accuse(int accused, Reason reason) {
  Lock lock(mutex_);
  roll_.Miss();
  if (!roll_.Ending().has_value()) {
    if (rank_ != 0 && roll_.gone(0)) {
      roll_.Declare(accused, absl::StatusCode::kUnavailable, "connection closed");
    } else {
      roll_.Accuse(accused, reason, Now());
    }
    Settle();
    Ring(wake_fd_);  // the thread's next tick may have become earlier
    Await(lock, peer_timeout_ / 4, [this] { return roll_.Ending().has_value(); });
  }
  if (!roll_.Ending().has_value()) {
    roll_.Declare(rank_ == 0 ? accused : 0, absl::StatusCode::kDeadlineExceeded, "does not answer");
    Settle();
  }
  return Error(*roll_.Ending());
}

absl::Status Membership::Error(const Departure& departure) const {
  const std::string when = absl::StrCat(roll_.Busy() ? "during " : "before ", what_);
  std::string text;
  if (departure.clean) {
    text = absl::StrCat("left the group before the others were done (", when, ")");
  } else if (departure.code == absl::StatusCode::kDeadlineExceeded) {
    text = absl::StrCat("is late: it ", departure.text, " (", when, ")");
  } else {
    text = absl::StrCat("left the group (", departure.text, ") ", when);
  }
  return ErrorAboutRank(departure.rank, departure.code,
                        absl::StrCat("rank ", departure.rank, " ", text));
}

// After every change of the roll: what it wants to say goes out, and an end is made known.
void Membership::Settle() {
  Flush();
  changed_.notify_all();
  const auto ending = roll_.Ending();
  // Outside a collective a clean departure is not yet an end: there may be no further collective.
  if (!ending.has_value() || (ending->clean && !roll_.Busy())) return;
  if (!ended_.exchange(true, std::memory_order_acq_rel)) Ring(ended_fd_);
}

void Membership::Flush() {
  for (auto& [to, message] : roll_.TakeOutgoing()) {
    Link& link = *links_[to];
    if (link.unsent.size() < kMostUnsent) link.unsent += Frame(message);
  }
  for (auto& link : links_) link->Push();
}

void Membership::Hear(int from) {
  Link& link = *links_[from];
  const bool open = link.Read();
  while (true) {
    absl::StatusOr<Message> message = link.Next();
    if (message.ok()) {
      roll_.OnMessage(from, *message, Now());
      Parcel* const parcel = std::get_if<Parcel>(&*message);
      if (parcel != nullptr) parcels_.emplace_back(from, std::move(parcel->payload));
    } else if (absl::IsNotFound(message.status())) {
      break;
    } else {
      roll_.Declare(from, absl::StatusCode::kUnavailable, "it sent what is no message");
      link.fd.reset();
      return;
    }
  }
  if (open) return;
  link.fd.reset();
  roll_.OnClosed(from);
}

// One wait for the others, the caller and the clock.
void Membership::Listen(Lock& lock) {
  std::vector<pollfd> polled = {{wake_fd_.get(), POLLIN, 0}};
  std::vector<int> ranks = {-1};
  for (size_t r = 0; r < links_.size(); ++r) {
    const Link& link = *links_[r];
    if (!link.fd.valid()) continue;
    const short wanted = link.unsent.empty() ? POLLIN : POLLIN | POLLOUT;
    polled.push_back({link.fd.get(), wanted, 0});
    ranks.push_back(static_cast<int>(r));
  }
  const absl::Duration wait = std::max(absl::ZeroDuration(), roll_.NextTick() - Now());
  lock.unlock();
  ::poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
  lock.lock();
  uint64_t drained;
  if (polled[0].revents != 0 && ::read(wake_fd_.get(), &drained, sizeof(drained)) < 0) return;
  for (size_t i = 1; i < polled.size(); ++i) {
    if (polled[i].revents != 0) Hear(ranks[i]);
  }
}

void Membership::Run() {
  Lock lock(mutex_);
  while (!stopping_) {
    Listen(lock);
    roll_.OnTick(Now());
    Settle();
    Deliver(lock);
  }
}

void Membership::Post(int to, std::string payload) {
  Lock lock(mutex_);
  Link& link = *links_[to];
  if (!link.fd.valid()) return;
  link.unsent += Frame(Parcel{std::move(payload)});
  link.Push();
  if (!link.unsent.empty()) Ring(wake_fd_);  // the thread has to wait for room too
}

void Membership::SetListener(Listener* listener) {
  {
    const Lock lock(listener_mutex_);
    listener_ = listener;
    told_of_end_ = false;
    listening_ = listener != nullptr;
  }
  Ring(wake_fd_);
}

absl::Duration Membership::SilenceOf(int rank) {
  const Lock lock(mutex_);
  return Now() - roll_.heard(rank);
}

void Membership::Deliver(Lock& lock) {
  if (!listening_ || (parcels_.empty() && (!ended() || told_of_end_))) return;
  const auto parcels = std::exchange(parcels_, {});
  const auto ending = ended() ? roll_.Ending() : std::nullopt;
  const absl::Status end = ending.has_value() ? Error(*ending) : absl::OkStatus();
  lock.unlock();
  {
    const Lock listening(listener_mutex_);
    if (listener_ != nullptr) {
      for (const auto& [from, payload] : parcels) listener_->OnParcel(from, payload);
      if (!end.ok() && !told_of_end_.exchange(true)) listener_->OnEnded(end);
    }
  }
  lock.lock();
}

}  // namespace tutti::comm
