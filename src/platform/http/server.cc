#include "platform/http/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/http/open_connections.h"
#include "platform/http/server_connection.h"

namespace tutti::http {
namespace {

// Those of one address who have not proved who they are get this part of all connections.
constexpr int kShareOfAnAddress = 4;

absl::StatusOr<base::UniqueFd> Listen(const ServerOptions& options) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<uint16_t>(options.port));
  if (::inet_pton(AF_INET, options.address.c_str(), &name.sin_addr) != 1) {
    return absl::InvalidArgumentError(absl::StrCat(options.address, ": not a numeric address"));
  }
  base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const std::string place = absl::StrCat(options.address, ":", options.port);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
      ::listen(fd.get(), 512) != 0) {
    if (errno == EADDRINUSE) {
      return absl::AlreadyExistsError(absl::StrCat(
          place, " is taken by another program: end that one (`ss -ltnp sport = :", options.port,
          "` names it) or choose another port with --port"));
    }
    return base::ErrnoStatus(absl::StrCat("listen on ", place));
  }
  return fd;
}

int PortOf(int fd) {
  sockaddr_in name{};
  socklen_t size = sizeof name;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size);
  return ntohs(name.sin_port);
}

std::string AddressOf(const sockaddr_in& name) {
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &name.sin_addr, text, sizeof text);
  return text;
}

}  // namespace

// What the connections' threads share; the last of them to go frees it.
class Server::Impl : public std::enable_shared_from_this<Server::Impl> {
 public:
  Impl(const ServerOptions& options, Handler handler, base::UniqueFd listener)
      : options_(options),
        handler_(std::move(handler)),
        listener_(std::move(listener)),
        stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        port_(PortOf(listener_.get())),
        open_(options.max_connections, std::max(1, options.max_connections / kShareOfAnAddress)) {}

  void Run() {
    acceptor_ = std::thread([this] { AcceptAll(); });
  }

  void Stop(absl::Duration grace) {
    if (stopping_.exchange(true)) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(stop_event_.get(), &one, sizeof one);
    acceptor_.join();
    listener_.reset();
    open_.AwaitNone(grace);
  }

  const ServerOptions options_;
  const Handler handler_;
  base::UniqueFd listener_;
  const base::UniqueFd stop_event_;
  const int port_;

 private:
  void AcceptAll() {
    while (!stopping_) {
      pollfd waiting[2] = {{listener_.get(), POLLIN, 0}, {stop_event_.get(), POLLIN, 0}};
      ::poll(waiting, 2, -1);
      sockaddr_in peer{};
      socklen_t size = sizeof peer;
      base::UniqueFd fd(
          ::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC));
      if (fd.valid()) {
        Take(std::move(fd), peer);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        spdlog::error("cannot take a connection: {}", base::ErrnoStatus("accept").ToString());
        ::poll(&waiting[1], 1, 100);  // the connection stays in the backlog; look again soon
      }
    }
  }

  void Take(base::UniqueFd fd, const sockaddr_in& name) {
    const std::string address = AddressOf(name);
    if (!open_.Add(fd.get(), address)) {
      Refuse(fd.get());
      return;
    }
    const int number = fd.release();  // open_ closes it
    try {
      std::thread([self = shared_from_this(), number,
                   peer = absl::StrCat(address, ":", ntohs(name.sin_port))] {
        self->Serve(number, peer);
      }).detach();
    } catch (const std::system_error&) {
      Refuse(number);
      open_.Close(number);
    }
  }

  // Without a word where that would be no TLS.
  void Refuse(int fd) const {
    if (options_.identity != nullptr) return;
    static constexpr absl::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
        "Connection: close\r\n\r\n";
    ::send(fd, kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void Serve(int number, const std::string& peer) {
    sigset_t pipe;  // sendfile(2) has no MSG_NOSIGNAL
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    ServeConnection(number, peer, options_, handler_, open_, stop_event_.get(), stopping_);
    open_.Close(number);
  }

  std::atomic<bool> stopping_ = false;
  std::thread acceptor_;
  OpenConnections open_;
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      Handler handler) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd listener, Listen(options));
  auto impl = std::make_shared<Impl>(options, std::move(handler), std::move(listener));
  impl->Run();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { Stop(absl::ZeroDuration()); }
const std::string& Server::address() const { return impl_->options_.address; }
int Server::port() const { return impl_->port_; }
std::string Server::url() const {
  return absl::StrCat(impl_->options_.identity ? "https://" : "http://", address(), ":", port());
}
void Server::Stop(absl::Duration grace) { impl_->Stop(grace); }

}  // namespace tutti::http
