#include "runtime/comm/transport/connect/connection_acceptor.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

#include "base/status.h"
#include "runtime/comm/rendezvous/authenticate.h"

namespace tutti::comm {

ConnectionAcceptor::ConnectionAcceptor(std::string token, Listeners listeners)
    : token_(std::move(token)),
      listeners_(std::move(listeners)),
      stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      news_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      rests_until_(base::Deadline::After(absl::ZeroDuration())),
      handshakes_(kMostAtOnce, [this] { ::eventfd_write(news_fd_.get(), 1); }) {}

ConnectionAcceptor::~ConnectionAcceptor() {
  ::eventfd_write(stop_fd_.get(), 1);
  handshakes_.AwaitAll();
}

absl::StatusOr<ConnectionAcceptor::Incoming> ConnectionAcceptor::Next(const Patience& patience) {
  while (true) {
    Incoming incoming;
    if (TakePassed(incoming)) return incoming;
    TUTTI_RETURN_IF_ERROR(AcceptAll());
    Wait(patience);
    pollfd interrupt = {patience.interrupt, POLLIN, 0};
    if (::poll(&interrupt, 1, 0) > 0) return absl::CancelledError("interrupted");
    if (!patience.deadline.Expired()) continue;
    if (TakePassed(incoming)) return incoming;
    return absl::DeadlineExceededError("nobody came in time");
  }
}

// Whether one has passed.
bool ConnectionAcceptor::TakePassed(Incoming& incoming) {
  const std::lock_guard lock(mutex_);
  if (passed_.empty()) return false;
  incoming = std::move(passed_.front());
  passed_.pop_front();
  return true;
}

absl::Status ConnectionAcceptor::AcceptAll() {
  const Patience now{base::Deadline::After(absl::ZeroDuration())};
  for (const bool local : {false, true}) {
    while (rests_until_.Expired() && !handshakes_.full()) {
      auto socket = Accept(local ? listeners_.local.get() : listeners_.tcp.get(), now);
      if (absl::IsDeadlineExceeded(socket.status())) break;
      if (absl::IsResourceExhausted(socket.status())) {
        rests_until_ = base::Deadline::After(kListenerRest);
        break;
      }
      TUTTI_RETURN_IF_ERROR(socket.status());
      const uint64_t number = accepted_++;
      handshakes_.Begin(*std::move(socket), [this, number, local](base::UniqueFd fd) {
        Handshake(number, std::move(fd), local);
      });
    }
  }
  return absl::OkStatus();
}

void ConnectionAcceptor::Wait(const Patience& patience) {
  const bool rests = !rests_until_.Expired();
  const short wanted = rests || handshakes_.full() ? 0 : POLLIN;
  pollfd polled[4] = {{news_fd_.get(), POLLIN, 0},
                      {patience.interrupt, POLLIN, 0},
                      {listeners_.tcp.get(), wanted, 0},
                      {listeners_.local.get(), wanted, 0}};
  const auto until =
      rests ? base::Deadline::Sooner(patience.deadline, rests_until_) : patience.deadline;
  ::poll(polled, 4, until.RemainingMillis());
  eventfd_t count;
  if (polled[0].revents != 0) ::eventfd_read(news_fd_.get(), &count);
}

void ConnectionAcceptor::Handshake(uint64_t number, base::UniqueFd socket, bool local) {
  absl::StatusOr<Link> link = ReceiveLink(socket.get());
  const std::lock_guard lock(mutex_);
  if (link.ok()) passed_.push_back({number, std::move(socket), local, *std::move(link)});
}

absl::StatusOr<Link> ConnectionAcceptor::ReceiveLink(int socket) const {
  const Patience patience{base::Deadline::After(kHandshake), stop_fd_.get()};
  TUTTI_RETURN_IF_ERROR(Authenticate(socket, Side::kListener, token_, kChannelPurpose, patience));
  TUTTI_ASSIGN_OR_RETURN(Message message, ReceiveMessage(socket, kLongestSmallMessage, patience));
  Link* const link = std::get_if<Link>(&message);
  if (link == nullptr) return absl::InvalidArgumentError("it did not say whose it is");
  return std::move(*link);
}

}  // namespace tutti::comm
