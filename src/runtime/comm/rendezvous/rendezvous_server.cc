#include "runtime/comm/rendezvous/rendezvous_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/hash.h"
#include "base/status.h"
#include "runtime/comm/rendezvous/authenticate.h"

namespace tutti::comm {
namespace {
constexpr size_t kMostAtOnce = 256;  // connections that are being heard
}  // namespace

RendezvousServer::RendezvousServer(const GroupOptions& options, const Hello& self, int interrupt)
    : options_(options),
      self_(self),
      deadline_(base::Deadline::After(options.connect_timeout)),
      interrupt_(interrupt),
      done_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      waiting_(::epoll_create1(EPOLL_CLOEXEC)),
      handshakes_(kMostAtOnce, [] {}) {
  for (const int fd : {done_.get(), interrupt_}) {
    epoll_event readable = {.events = EPOLLIN, .data = {}};
    if (fd >= 0) ::epoll_ctl(waiting_.get(), EPOLL_CTL_ADD, fd, &readable);
  }
}

RendezvousServer::~RendezvousServer() {
  // Those still being heard are strangers: everybody who was to come has been admitted.
  ::eventfd_write(done_.get(), 1);
  handshakes_.AwaitAll();
}

absl::StatusOr<RendezvousResult> RendezvousServer::Receive(base::UniqueFd listener) {
  if (!listener.valid()) {
    TUTTI_ASSIGN_OR_RETURN(listener, ListenAtMaster());
  }
  const absl::Status all_came = AwaitAll(listener.get());
  const std::lock_guard lock(mutex_);
  if (!all_came.ok()) {
    Dismiss(all_came);
    return all_came;
  }
  return Conclude();
}

absl::StatusOr<base::UniqueFd> RendezvousServer::ListenAtMaster() const {
  const Endpoint place{options_.master_address, options_.master_port};
  absl::StatusOr<base::UniqueFd> listener =
      Listen(place, options_.address, {deadline_, interrupt_});
  if (listener.ok()) return listener;
  return absl::FailedPreconditionError(
      absl::StrCat("rank 0 cannot ", std::string(listener.status().message()),
                   "; choose another address or port (MASTER_ADDR, MASTER_PORT)"));
}

absl::Status RendezvousServer::AwaitAll(int listener) {
  while (true) {
    absl::StatusOr<base::UniqueFd> fd = Accept(listener, {deadline_, waiting_.get()});
    if (absl::IsResourceExhausted(fd.status())) {
      const absl::Status rested = Pause(kListenerRest, {deadline_, waiting_.get()});
      if (rested.ok()) continue;
      fd = rested;
    }
    const std::lock_guard lock(mutex_);
    if (!fault_.ok()) return fault_;
    if (joiners_.size() + 1 == static_cast<size_t>(options_.size)) return absl::OkStatus();
    if (absl::IsCancelled(fd.status())) return fd.status();
    if (absl::IsDeadlineExceeded(fd.status())) return Absent();
    TUTTI_RETURN_IF_ERROR(fd.status());
    // If that is too many at once, it is closed; a rank comes again.
    handshakes_.Begin(*std::move(fd),
                      [this](base::UniqueFd socket) { Handshake(std::move(socket)); });
  }
}

void RendezvousServer::Handshake(base::UniqueFd fd) {
  absl::StatusOr<Hello> hello = ReceiveHello(fd.get());
  if (hello.ok()) Admit(*std::move(hello), std::move(fd));
  const std::lock_guard lock(mutex_);
  if (hello.ok() || absl::IsCancelled(hello.status())) return;
  ++refusals_;
  refused_ = std::string(hello.status().message());
}

absl::StatusOr<Hello> RendezvousServer::ReceiveHello(int fd) const {
  const Patience patience{
      base::Deadline::Sooner(deadline_, base::Deadline::After(kHandshakeTimeout)), done_.get()};
  TUTTI_RETURN_IF_ERROR(
      Authenticate(fd, Side::kListener, options_.token, kRendezvousPurpose, patience));
  TUTTI_ASSIGN_OR_RETURN(Message message, ReceiveMessage(fd, kLongestSmallMessage, patience));
  Hello* hello = std::get_if<Hello>(&message);
  if (hello == nullptr) return absl::InvalidArgumentError("it did not say who it is");
  return std::move(*hello);
}

// One who knows the token and is wrong all the same belongs to this job: the job is set up wrongly,
// and everybody shall hear it now rather than at the end of the time.
void RendezvousServer::Admit(Hello hello, base::UniqueFd fd) {
  const std::lock_guard lock(mutex_);
  const absl::Status checked = CheckJoiner(hello);
  if (checked.ok()) {
    const int rank = hello.rank;
    joiners_[rank] = Joiner{std::move(hello), std::move(fd)};
  } else {
    fault_ = checked;
    SendMessage(fd.get(), Refusal{checked.code(), std::string(checked.message())},
                {base::Deadline::After(absl::ZeroDuration())})
        .IgnoreError();
  }
  const bool all = joiners_.size() + 1 == static_cast<size_t>(options_.size);
  if (all || !fault_.ok()) ::eventfd_write(done_.get(), 1);
}

absl::Status RendezvousServer::CheckJoiner(const Hello& hello) {
  if (hello.size != options_.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", hello.rank,
                                                   " was started with WORLD_SIZE ", hello.size,
                                                   ", rank 0 with ", options_.size));
  }
  if (hello.rank >= options_.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", hello.rank, " in a group of ", options_.size));
  }
  if (hello.rank == 0) {
    return absl::InvalidArgumentError(absl::StrCat("a second rank 0 came, from ", hello.address));
  }
  const auto earlier = joiners_.find(hello.rank);
  // One that was started again after its first process died takes its place.
  if (earlier == joiners_.end() || IsClosed(earlier->second.fd.get())) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rank ", hello.rank, " came twice, from ",
                                                 earlier->second.hello.address, " and from ",
                                                 hello.address));
}

absl::Status RendezvousServer::Absent() {
  std::vector<int> absent;
  for (int rank = 1; rank < options_.size; ++rank) {
    if (joiners_.count(rank) == 0) absent.push_back(rank);
  }
  std::string text = absl::StrCat(
      absent.size() == 1 ? "rank " : "ranks ", absl::StrJoin(absent, ", "), " of ", options_.size,
      " did not come to ", Endpoint{options_.master_address, options_.master_port}.ToString(),
      " within ", absl::FormatDuration(options_.connect_timeout));
  if (refusals_ > 0) {
    absl::StrAppend(&text, "; ", refusals_, " connection(s) refused, the last one because ",
                    refused_);
  }
  return absl::DeadlineExceededError(text);
}

void RendezvousServer::Dismiss(const absl::Status& why) {
  const Refusal refusal{why.code(), std::string(why.message())};
  for (auto& [rank, joiner] : joiners_) {
    SendMessage(joiner.fd.get(), refusal, {base::Deadline::After(absl::Seconds(1))}).IgnoreError();
  }
}

absl::StatusOr<RendezvousResult> RendezvousServer::Conclude() {
  RendezvousResult rendezvous;
  rendezvous.table.group = base::RandomHex(16);
  rendezvous.table.ranks.push_back(self_);
  rendezvous.controls.resize(options_.size);
  for (auto& [rank, joiner] : joiners_) rendezvous.table.ranks.push_back(joiner.hello);
  const std::string frame = Frame(rendezvous.table);
  for (auto& [rank, joiner] : joiners_) {
    const absl::Status sent =
        Send(joiner.fd.get(), frame, {base::Deadline::After(kHandshakeTimeout)});
    if (!sent.ok())
      return base::Annotate(sent, absl::StrCat("rank ", rank, " left the rendezvous"));
    rendezvous.controls[rank] = std::move(joiner.fd);
  }
  return rendezvous;
}

}  // namespace tutti::comm
