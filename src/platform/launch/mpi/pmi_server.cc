#include "platform/launch/mpi/pmi_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/launch/node/tcp.h"

namespace tutti::launch {
namespace {

constexpr size_t kLongestMessage = 16 << 10;
// Until somebody new is taken, after an id that no rank has, and once there are file descriptors
// for no more ranks.
constexpr absl::Duration kPause = absl::Milliseconds(100);

absl::Status Unusable(const std::string& address) {
  return base::ErrnoStatus(absl::StrCat("serve PMI at ", address));
}

}  // namespace

std::string PmiServer::AddressFor(const spec::LaunchPlan& plan) {
  return plan.nodes.size() == 1 ? "127.0.0.1" : plan.nodes.front().address;
}

absl::StatusOr<std::unique_ptr<PmiServer>> PmiServer::Listen(const spec::LaunchPlan& plan) {
  const std::string address = AddressFor(plan);
  TUTTI_ASSIGN_OR_RETURN(sockaddr_in name, AddressOf(address, 0));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, TcpSocket());
  socklen_t size = sizeof name;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
      ::listen(fd.get(), 4096) != 0 ||
      ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&name), &size) != 0) {
    return Unusable(address);
  }
  TUTTI_ASSIGN_OR_RETURN(Wakeup news, Wakeup::Make());
  TUTTI_ASSIGN_OR_RETURN(Wakeup end, Wakeup::Make());
  return std::unique_ptr<PmiServer>(
      new PmiServer(std::move(fd), ntohs(name.sin_port), plan, std::move(news), std::move(end)));
}

void PmiServer::Serve(const std::vector<int>& sockets) {
  for (const int socket : sockets) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) == 0) {
      nodes_.insert(AddressText(peer));
    }
  }
  thread_ = std::thread([this] { Run(); });
}

PmiServer::~PmiServer() {
  end_.Notify();
  if (thread_.joinable()) thread_.join();
}

void PmiServer::Run() {
  while (true) {
    const bool takes = pause_.Expired();
    std::vector<pollfd> waiting = {{end_.fd(), POLLIN, 0}, {takes ? listener_.get() : -1, POLLIN}};
    std::vector<int> numbers;
    for (const auto& [number, client] : clients_) {
      waiting.push_back({client.fd.get(), POLLIN, 0});
      numbers.push_back(number);
    }
    const int patience = takes ? -1 : pause_.RemainingMillis();
    if (::poll(waiting.data(), waiting.size(), patience) < 0 && errno != EINTR) return;
    if (waiting[0].revents != 0) return;
    // Who has gone first: the same rank may come again at once.
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto client = clients_.find(numbers[i]);
      if (waiting[i + 2].revents == 0 || client == clients_.end()) continue;
      if (!ReceiveFrom(numbers[i], client->second)) CutOff(numbers[i]);
    }
    if (waiting[1].revents != 0 && !AcceptAll()) Pause(kPause);
    Publish();
  }
}

// The failure first: who then sees that nobody is here any more knows of all that there were.
void PmiServer::Publish() {
  std::optional<PmiFailure> failure = protocol_.failure();
  const bool aborts = failure && failure->abort_code;
  bool had_aborted;
  {
    const absl::MutexLock lock(&mutex_);
    had_aborted = failure_ && failure_->abort_code;
    failure_ = std::move(failure);
  }
  const bool was_busy = busy_.exchange(protocol_.HasRanks());
  if ((was_busy && !protocol_.HasRanks()) || (aborts && !had_aborted)) news_.Notify();
}

std::optional<PmiFailure> PmiServer::failure() const {
  const absl::MutexLock lock(&mutex_);
  return failure_;
}

bool PmiServer::AcceptAll() {
  while (true) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    base::UniqueFd fd(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size,
                                SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
    if (!nodes_.contains(AddressText(peer))) continue;
    KeepAlive(fd.get());
    clients_[next_++].fd = std::move(fd);
  }
}

bool PmiServer::ReceiveFrom(int number, Client& client) {
  char buffer[4096];
  const ssize_t n = ::recv(client.fd.get(), buffer, sizeof buffer, 0);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  client.read.append(buffer, n);
  size_t begin = 0;
  for (size_t end; (end = client.read.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (!HandleLine(number, absl::string_view(client.read).substr(begin, end - begin)))
      return false;
  }
  client.read.erase(0, begin);
  return client.read.size() <= kLongestMessage;
}

// Each asks and waits for its answer, so that no answer finds a full socket.
bool PmiServer::HandleLine(int number, absl::string_view line) {
  std::vector<PmiReply> replies;
  if (!protocol_.HandleCommand(number, line, replies)) {
    if (!protocol_.IsRank(number)) Pause(kPause);
    return false;
  }
  for (const PmiReply& reply : replies) {
    const std::string text = absl::StrCat(reply.line, "\n");
    const int fd = clients_.at(reply.client).fd.get();
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    // Its end is then heard as that of any other.
    if (sent != static_cast<ssize_t>(text.size())) ::shutdown(fd, SHUT_RDWR);
  }
  return true;
}

void PmiServer::Pause(absl::Duration duration) {
  pause_ = base::Deadline::After(pause_.Remaining() + duration);
}

void PmiServer::CutOff(int number) {
  protocol_.Forget(number);
  clients_.erase(number);
}

}  // namespace tutti::launch
