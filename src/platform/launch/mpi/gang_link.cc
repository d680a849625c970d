#include "platform/launch/mpi/gang_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/lost_peer.h"
#include "platform/launch/mpi/gang_proof.h"
#include "platform/launch/node/tcp.h"

namespace tutti::launch {
namespace {

using nlohmann::json;

constexpr int kLookEvery = 100;           // ms between looks at `cancelled`
constexpr size_t kMostHandshakes = 2048;  // handshakes at a time

// Names the node whose launcher has closed the connection: that it has gone is the cause, and not
// what this node makes of it.
absl::Status WithPeer(const absl::Status& status, const std::string& node) {
  if (!absl::IsUnavailable(status)) return status;
  return absl::UnavailableError(
      absl::StrCat(base::kLostLauncher, node, " before the ranks were started"));
}

// GangHandshakes holds the connections to the first node of a gang until each has proved that it
// knows the job's token: all at the same time, so that a silent one holds no other up. Not
// thread-safe.
class GangHandshakes {
 public:
  struct Peer {
    int node = 0;
    bool has_mpi = false;
    LineSocket socket;
  };

  // `listener` does not block. Both outlive the object.
  GangHandshakes(const spec::LaunchPlan& plan, int listener) : plan_(plan), listener_(listener) {}

  // Returns the descriptors to poll; ReadProofs takes them with what poll(2) found.
  std::vector<pollfd> Waiting() const;
  // Returns the peers that have proved by now who they are. A connection that cannot, or takes too
  // long, is dropped.
  std::vector<Peer> ReadProofs(const std::vector<pollfd>& polled);

 private:
  struct Handshake {
    LineSocket socket;
    base::Deadline deadline = base::Deadline::After(kIntroduction);
    int node = -1;  // as it says
    bool has_mpi = false;
    std::string nonces;
  };
  void AcceptAll();
  // Reads what the far end has sent; true once it has proved that it holds the token. An error: it
  // does not hold it.
  absl::StatusOr<bool> ReadProof(Handshake& one) const;
  absl::Status Greet(const nlohmann::json& hello, Handshake& one) const;

  const spec::LaunchPlan& plan_;
  const int listener_;
  std::vector<Handshake> all_;  // in the order in which they came
};

std::vector<pollfd> GangHandshakes::Waiting() const {
  std::vector<pollfd> waiting;
  for (const Handshake& one : all_) waiting.push_back({one.socket.fd(), POLLIN, 0});
  waiting.push_back({listener_, POLLIN, 0});
  return waiting;
}

std::vector<GangHandshakes::Peer> GangHandshakes::ReadProofs(const std::vector<pollfd>& polled) {
  std::vector<Peer> found;
  std::vector<Handshake> others;
  for (size_t i = 0; i < all_.size(); ++i) {
    Handshake& one = all_[i];
    const absl::StatusOr<bool> proved = polled[i].revents != 0 ? ReadProof(one) : false;
    if (proved.value_or(false)) {
      found.push_back({one.node, one.has_mpi, std::move(one.socket)});
    } else if (proved.ok() && !one.deadline.Expired()) {
      others.push_back(std::move(one));
    }
  }
  all_ = std::move(others);
  AcceptAll();
  return found;
}

void GangHandshakes::AcceptAll() {
  while (true) {
    base::UniqueFd fd(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd.valid()) return;
    KeepAlive(fd.get());
    // Who has been silent for longest makes room: those of the job speak at once.
    if (all_.size() >= kMostHandshakes) all_.erase(all_.begin());
    all_.push_back({.socket = LineSocket(std::move(fd))});
  }
}

absl::StatusOr<bool> GangHandshakes::ReadProof(Handshake& one) const {
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const std::optional<json> message, one.socket.Take());
    if (!message) return false;
    if (one.node < 0) {
      TUTTI_RETURN_IF_ERROR(Greet(*message, one));
      continue;
    }
    const std::string expected =
        Proof(plan_.job_token, absl::StrCat(one.node, " ", one.has_mpi ? 1 : 0, one.nonces));
    if (base::EqualInConstantTime(TextOf(*message, "proof"), expected)) return true;
    return absl::PermissionDeniedError("it does not hold the job's token");
  }
}

absl::Status GangHandshakes::Greet(const json& hello, Handshake& one) const {
  const auto field = hello.find("node");
  const int node = field != hello.end() && field->is_number_integer() ? field->get<int>() : -1;
  if (node < 1 || node >= static_cast<int>(plan_.nodes.size())) {
    return absl::InvalidArgumentError("no node of this job");
  }
  one.node = node;
  one.has_mpi = FlagOf(hello, "mpi");
  const std::string own = base::RandomHex(kNonceBytes);
  one.nonces = absl::StrCat(" ", TextOf(hello, "nonce"), " ", own);
  return one.socket.Send(
      {{"nonce", own}, {"proof", Proof(plan_.job_token, absl::StrCat("first", one.nonces))}});
}

class Meeting {
 public:
  Meeting(const spec::LaunchPlan& plan, MpiWay own, const std::atomic<bool>& cancelled,
          base::Deadline deadline)
      : plan_(plan), own_(own), cancelled_(cancelled), deadline_(deadline) {}

  // On the first node: the others by index, and what is to be done.
  absl::StatusOr<MpiWay> Gather(int pmi_port, std::map<int, LineSocket>& peers) {
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd listener, Listen());
    MpiWay way = own_;
    GangHandshakes handshakes(plan_, listener.get());
    while (peers.size() + 1 < plan_.nodes.size()) {
      std::vector<pollfd> waiting = handshakes.Waiting();
      TUTTI_RETURN_IF_ERROR(Look(waiting, Missing(peers)).status());
      for (GangHandshakes::Peer& one : handshakes.ReadProofs(waiting)) {
        const bool is_new = peers.try_emplace(one.node, std::move(one.socket)).second;
        if (is_new && !one.has_mpi && way == MpiWay::kMpirun) way = MpiWay::kNone;
      }
    }
    for (auto& [node, socket] : peers) {
      const absl::Status told = socket.Send(
          {{"pmix", way == MpiWay::kPmix}, {"mpirun", way == MpiWay::kMpirun}, {"pmi", pmi_port}});
      TUTTI_RETURN_IF_ERROR(WithPeer(told, plan_.nodes[static_cast<size_t>(node)].name));
    }
    return way;
  }

  // On the others: the connection to the first, and what it says.
  absl::StatusOr<MpiWay> Join(int& pmi_port, std::map<int, LineSocket>& peers) {
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, Connect());
    LineSocket socket(std::move(fd));
    TUTTI_RETURN_IF_ERROR(Introduce(socket));
    std::optional<json> answer;
    while (!answer) {
      TUTTI_RETURN_IF_ERROR(Await(socket.fd(), POLLIN, "the other nodes"));
      TUTTI_ASSIGN_OR_RETURN(answer, socket.Take());
    }
    peers.try_emplace(0, std::move(socket));
    const auto port = answer->find("pmi");
    if (port != answer->end() && port->is_number_integer()) pmi_port = port->get<int>();
    if (FlagOf(*answer, "pmix")) return MpiWay::kPmix;
    return FlagOf(*answer, "mpirun") ? MpiWay::kMpirun : MpiWay::kNone;
  }

 private:
  bool has_mpi() const { return own_ == MpiWay::kMpirun; }

  absl::Status Await(int fd, short events, const std::string& for_whom) const {
    std::vector<pollfd> waiting = {{fd, events, 0}};
    while (true) {
      TUTTI_ASSIGN_OR_RETURN(const bool any, Look(waiting, for_whom));
      if (any) return absl::OkStatus();
    }
  }

  // Waits a moment. Whether one of them is ready.
  absl::StatusOr<bool> Look(std::vector<pollfd>& waiting, const std::string& for_whom) const {
    if (cancelled_) return absl::CancelledError("stopped before its processes began");
    if (deadline_.Expired()) {
      return absl::DeadlineExceededError(
          absl::StrCat("the launchers did not meet at ", plan_.nodes.front().address, ":",
                       plan_.start_port, " to start the ranks: waiting for ", for_whom));
    }
    const int timeout = std::min(kLookEvery, deadline_.RemainingMillis());
    return ::poll(waiting.data(), waiting.size(), timeout) > 0;
  }

  std::string Missing(const std::map<int, LineSocket>& peers) const {
    for (size_t i = 1; i < plan_.nodes.size(); ++i) {
      if (!peers.contains(static_cast<int>(i))) return plan_.nodes[i].name;
    }
    return "nobody";
  }

  absl::StatusOr<base::UniqueFd> Listen() const {
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, TcpSocket());
    const int on = 1;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    TUTTI_ASSIGN_OR_RETURN(const sockaddr_in name,
                           AddressOf(plan_.nodes.front().address, plan_.start_port));
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0 ||
        ::listen(fd.get(), 1024) != 0) {
      return base::ErrnoStatus(absl::StrCat("listen at ", plan_.nodes.front().address, ":",
                                            plan_.start_port, " to start the ranks"));
    }
    return fd;
  }

  // The first node's launcher may not listen yet.
  absl::StatusOr<base::UniqueFd> Connect() const {
    TUTTI_ASSIGN_OR_RETURN(const sockaddr_in name,
                           AddressOf(plan_.nodes.front().address, plan_.start_port));
    while (true) {
      TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd, TcpSocket());
      KeepAlive(fd.get());
      TUTTI_ASSIGN_OR_RETURN(const int error, ConnectOnce(fd.get(), name));
      if (error == 0) return fd;
      fd.reset();
      if (cancelled_ || deadline_.Expired()) {
        TUTTI_RETURN_IF_ERROR(
            Await(-1, 0, absl::StrCat(plan_.nodes.front().name, " (", std::strerror(error), ")")));
      }
      ::poll(nullptr, 0, 10);  // nothing tells when somebody begins to listen
    }
  }

  // 0 when connected, else why not. What fails at once is told by connect alone.
  absl::StatusOr<int> ConnectOnce(int fd, const sockaddr_in& name) const {
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    TUTTI_RETURN_IF_ERROR(Await(fd, POLLOUT, plan_.nodes.front().name));
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }

  absl::Status Introduce(LineSocket& socket) const {
    const base::Deadline deadline = base::Deadline::After(kIntroduction);
    const std::string own = base::RandomHex(kNonceBytes);
    TUTTI_RETURN_IF_ERROR(
        socket.Send({{"node", plan_.node_index}, {"mpi", has_mpi()}, {"nonce", own}}));
    TUTTI_ASSIGN_OR_RETURN(const json answer, socket.Receive(deadline));
    const std::string nonces = absl::StrCat(" ", own, " ", TextOf(answer, "nonce"));
    if (!base::EqualInConstantTime(TextOf(answer, "proof"),
                                   Proof(plan_.job_token, absl::StrCat("first", nonces)))) {
      return absl::PermissionDeniedError(
          absl::StrCat("who listens at ", plan_.nodes.front().address, ":", plan_.start_port,
                       " does not hold the job's token"));
    }
    return socket.Send(
        {{"proof",
          Proof(plan_.job_token, absl::StrCat(plan_.node_index, " ", has_mpi() ? 1 : 0, nonces))}});
  }

  const spec::LaunchPlan& plan_;
  const MpiWay own_;
  const std::atomic<bool>& cancelled_;
  const base::Deadline deadline_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GangLink>> GangLink::Meet(const spec::LaunchPlan& plan, MpiWay own,
                                                         int pmi_port,
                                                         const std::atomic<bool>& cancelled,
                                                         base::Deadline deadline) {
  std::unique_ptr<GangLink> link(new GangLink);
  link->pmi_port_ = pmi_port;
  Meeting meeting(plan, own, cancelled, deadline);
  if (plan.nodes.size() == 1) {
    link->way_ = own;
  } else if (plan.node_index == 0) {
    TUTTI_ASSIGN_OR_RETURN(link->way_, meeting.Gather(pmi_port, link->peers_));
  } else {
    const auto way = meeting.Join(link->pmi_port_, link->peers_);
    TUTTI_RETURN_IF_ERROR(WithPeer(way.status(), plan.nodes.front().name));
    link->way_ = *way;
  }
  return link;
}

}  // namespace tutti::launch
