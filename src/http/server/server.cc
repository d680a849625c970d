#include "http/server/server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "http/server/connection_poller.h"
#include "http/server/handler_pool.h"
#include "http/server/open_connections.h"
#include "http/server/server_connection.h"
#include "http/socket_name.h"

namespace tutti::http {
namespace {

// The strangers of one address may have this part of all connections.
constexpr int kShareOfAnAddress = 4;

// This many tasks run at a time in each lane, in the order of Lane.
constexpr std::array<int, kLanes> kThreads = {8, 8, 32, 32, 32, 32, 2, 16, 16, 16, 16};

// A quarter of the files that may be open is left for everything else.
int Most(const ServerOptions& options) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return options.max_connections;
  const rlim_t most = std::max<rlim_t>(limit.rlim_cur - limit.rlim_cur / 4, 16);
  return static_cast<int>(std::min<rlim_t>(options.max_connections, most));
}

absl::StatusOr<base::UniqueFd> Listen(const ServerOptions& options) {
  const auto name = SocketNameOf(options.address, options.port);
  if (!name) {
    return absl::InvalidArgumentError(absl::StrCat(options.address, ": not a numeric address"));
  }
  base::UniqueFd fd(
      ::socket(name->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::ErrnoStatus("socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (name->storage.ss_family == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  }
  const std::string place = TextOf(*name);
  if (::bind(fd.get(), name->address(), name->size) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE) {
      return absl::AlreadyExistsError(absl::StrCat(
          place, " is taken by another program: end that one (`ss -ltnp sport = :", options.port,
          "` names it) or choose another port with ", options.port_option));
    }
    return base::ErrnoStatus(absl::StrCat("listen on ", place));
  }
  return fd;
}

}  // namespace

class Server::Impl {
 public:
  Impl(const ServerOptions& options, Handler handler, base::UniqueFd listener)
      : options_(options),
        handler_(std::move(handler)),
        listener_(std::move(listener)),
        stop_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        name_(OwnName(listener_.get())),
        open_(Most(options), std::max(1, Most(options) / kShareOfAnAddress)),
        prefetch_(options.prefetch_bytes),
        pool_(kThreads),
        poller_(std::make_shared<ConnectionPoller>(
            [this](ConnectionPoller::Id id, const std::shared_ptr<ServerConnection>& connection,
                   Lane lane) { Resume(id, connection, lane); })) {}

  absl::Status Run() {
    TUTTI_RETURN_IF_ERROR(poller_->Start());
    acceptor_ = std::thread([this] { AcceptAll(); });
    return absl::OkStatus();
  }

  void Stop(absl::Duration grace) {
    if (stopping_.exchange(true)) return;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(stop_event_.get(), &one, sizeof one);
    if (acceptor_.joinable()) acceptor_.join();
    listener_.reset();
    poller_->WakeAll();
    open_.AwaitNone(grace);
    poller_->Stop();
    pool_.Stop();
  }

  ConnectionCounts connections() const { return open_.Count(); }

  const ServerOptions options_;
  const Handler handler_;
  base::UniqueFd listener_;
  const base::UniqueFd stop_event_;
  const SocketName name_;

 private:
  void AcceptAll() {
    while (!stopping_) {
      pollfd waiting[2] = {{listener_.get(), POLLIN, 0}, {stop_event_.get(), POLLIN, 0}};
      ::poll(waiting, 2, -1);
      SocketName peer;
      base::UniqueFd fd(::accept4(listener_.get(), peer.address(), &peer.size, SOCK_CLOEXEC));
      if (fd.valid()) {
        Take(std::move(fd), peer);
      } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
        spdlog::error("cannot take a connection: {}", base::ErrnoStatus("accept").ToString());
        ::poll(&waiting[1], 1, 100);  // the connection stays in the backlog; look again soon
      }
    }
  }

  void Take(base::UniqueFd fd, const SocketName& name) {
    if (!open_.Add(fd.get(), AddressOf(name))) {
      Refuse(fd.get());
      return;
    }
    const int number = fd.release();  // open_ closes it
    const std::string peer = TextOf(name);
    poller_->Add(number, [&](ConnectionPoller::Id id) {
      return std::make_shared<ServerConnection>(
          number, peer, ServerContext{options_, handler_, open_, prefetch_, stopping_},
          [poller = poller_, id] { poller->Wake(id); });
    });
  }

  // Closes the connection with a 503, or, since an answer in plain text is no TLS, without a word.
  void Refuse(int fd) const {
    if (options_.identity != nullptr) return;
    static constexpr absl::string_view kBusy =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
        "Connection: close\r\n\r\n";
    ::send(fd, kBusy.data(), kBusy.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  using Id = ConnectionPoller::Id;
  using ConnectionPtr = std::shared_ptr<ServerConnection>;

  // In a place that is stuck the connection would wait without end: it goes on in the protocol's
  // lane instead, where it gives up.
  void Resume(Id id, ConnectionPtr connection, Lane lane) {
    Place place = connection->PlaceIn(lane);
    if (!place.group.empty() && pool_.Stuck(place, options_.room_timeout)) place = {};
    pool_.Add(place, [this, id, connection = std::move(connection)](Place& at) {
      GiveTurns(id, connection, at);
    });
  }

  // The poller resumes it when the wait for room takes too long.
  void AwaitRoom(Id id, const ConnectionPtr& connection, const Need& need) {
    const uint64_t ticket = ++tickets_;
    poller_->Await(id, {.until = base::Deadline::After(need.patience), .ticket = ticket});
    pool_.Add(need.place, [this, id, connection, ticket](Place& at) {
      if (poller_->Take(id, ticket)) GiveTurns(id, connection, at);
    });
  }

  void GiveTurns(Id id, const ConnectionPtr& connection, Place& at) {
    while (true) {
      Need need = connection->Turn(at.lane);
      switch (need.kind) {
        case Need::Kind::kWaiting:
          return poller_->Await(id, need.waiting);
        case Need::Kind::kLane:
          if (!pool_.Move(at, need.place)) return Resume(id, connection, need.place.lane);
          at = std::move(need.place);
          break;
        case Need::Kind::kRoom:
          if (pool_.Move(at, need.place)) {
            at = std::move(need.place);
          } else if (!pool_.Stuck(need.place, need.patience)) {
            return AwaitRoom(id, connection, need);
          }
          break;
        case Need::Kind::kClose:
          poller_->Remove(id);
          return open_.Close(connection->fd());
      }
    }
  }

  std::atomic<bool> stopping_ = false;
  std::atomic<uint64_t> tickets_ = 0;
  std::thread acceptor_;
  OpenConnections open_;
  PrefetchBudget prefetch_;
  HandlerPool pool_;
  const std::shared_ptr<ConnectionPoller> poller_;  // also of wakers, which may outlive the server
};

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options,
                                                      Handler handler) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd listener, Listen(options));
  auto impl = std::make_unique<Impl>(options, std::move(handler), std::move(listener));
  TUTTI_RETURN_IF_ERROR(impl->Run());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { Stop(absl::ZeroDuration()); }
const std::string& Server::address() const { return impl_->options_.address; }
int Server::port() const { return PortOf(impl_->name_); }
std::string Server::url() const {
  return absl::StrCat(impl_->options_.identity ? "https://" : "http://", TextOf(impl_->name_));
}
ConnectionCounts Server::connections() const { return impl_->connections(); }
void Server::Stop(absl::Duration grace) { impl_->Stop(grace); }

}  // namespace tutti::http
