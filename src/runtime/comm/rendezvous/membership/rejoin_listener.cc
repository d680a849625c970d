#include "runtime/comm/rendezvous/membership/rejoin_listener.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/status.h"
#include "runtime/comm/rendezvous/authenticate.h"
#include "runtime/comm/rendezvous/rendezvous_server.h"

namespace tutti::comm {
namespace {

constexpr absl::Duration kHandshake = absl::Seconds(5);
constexpr size_t kMostHandshakes = 64;
constexpr size_t kMostUnsentBeats = 64 << 10;  // beats are not added beyond this
constexpr absl::Duration kLastWords = absl::Seconds(1);

bool IsMember(const Table& table, const Hello& hello) {
  return std::any_of(table.ranks.begin(), table.ranks.end(),
                     [&](const Hello& member) { return member.local_name == hello.local_name; });
}

bool IsKept(const Message& word) {
  return std::holds_alternative<Promise>(word) || std::holds_alternative<JoinRequest>(word);
}

}  // namespace

bool IsSameProcess(const Hello& a, const Hello& b) {
  return a.address == b.address && a.rejoin_port == b.rejoin_port;
}

absl::StatusOr<std::unique_ptr<RejoinListener>> RejoinListener::Open(const std::string& address,
                                                                     std::string token,
                                                                     absl::Duration beat) {
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd listener, Listen({address, 0}));
  TUTTI_ASSIGN_OR_RETURN(const int port, PortOf(listener.get()));
  return std::unique_ptr<RejoinListener>(
      new RejoinListener(std::move(listener), port, std::move(token), beat));
}

RejoinListener::RejoinListener(base::UniqueFd listener, int port, std::string token,
                               absl::Duration beat)
    : port_(port),
      token_(std::move(token)),
      beat_(beat),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      handshakes_(kMostHandshakes, [this] { ::eventfd_write(wake_fd_.get(), 1); }),
      rests_until_(base::Deadline::After(absl::ZeroDuration())) {
  listeners_.push_back(std::move(listener));
  thread_ = std::thread([this] { Run(); });
}

RejoinListener::~RejoinListener() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ::eventfd_write(stop_fd_.get(), 1);
  ::eventfd_write(wake_fd_.get(), 1);
  thread_.join();
  handshakes_.AwaitAll();
  // What was decided or refused just before: who does not hear it would take this rank for lost.
  const auto deadline = base::Deadline::After(kLastWords);
  for (auto& [number, visitor] : visitors_) {
    if (visitor.line.unsent() > 0) visitor.line.Flush({deadline}).IgnoreError();
  }
}

void RejoinListener::OpenAlsoAt(const Endpoint& place, const std::string& like) {
  absl::StatusOr<base::UniqueFd> listener = Listen(place, like);
  if (!listener.ok()) {
    spdlog::warn("newcomers will not find the group at {}: {}", place.ToString(),
                 std::string(listener.status().message()));
    return;
  }
  const std::lock_guard lock(mutex_);
  listeners_.push_back(*std::move(listener));
  ::eventfd_write(wake_fd_.get(), 1);
}

void RejoinListener::Enter(const Table& table, int rank) {
  {
    const std::lock_guard lock(mutex_);
    current_ = table;
  }
  rank == 0 ? Lead() : Follow(table.ranks[0]);
}

void RejoinListener::Lead() {
  const std::lock_guard lock(mutex_);
  leads_ = true;
}

void RejoinListener::Follow(const Hello& leader) {
  const std::lock_guard lock(mutex_);
  leads_ = false;
  leader_ = {leader.address, leader.rejoin_port};
  for (auto& [number, visitor] : visitors_) {
    if (std::holds_alternative<JoinRequest>(visitor.word)) Answer(visitor, leader_);
  }
  Changed();
}

void RejoinListener::Decide(const std::string& group, const Table& next) {
  const std::lock_guard lock(mutex_);
  decided_[group] = next;
  for (auto& [number, visitor] : visitors_) {
    const Promise* const promise = std::get_if<Promise>(&visitor.word);
    const JoinRequest* const request = std::get_if<JoinRequest>(&visitor.word);
    const bool asks = (promise != nullptr && promise->group == group) ||
                      (request != nullptr && IsMember(next, request->self));
    if (asks) Answer(visitor, Decided{next, false});
  }
  Changed();
}

std::vector<RejoinListener::Joiner> RejoinListener::Joiners() const {
  const std::lock_guard lock(mutex_);
  std::vector<Joiner> joiners;
  for (const auto& [number, visitor] : visitors_) {
    if (IsKept(visitor.word)) joiners.push_back({number, visitor.word, visitor.accepted});
  }
  return joiners;
}

void RejoinListener::AwaitChange(base::Deadline deadline) {
  Lock lock(mutex_);
  changed_.wait_until(lock, deadline.time_point(), [this] { return news_; });
  news_ = false;
}

void RejoinListener::Say(int joiner, const Message& message) {
  const std::lock_guard lock(mutex_);
  const auto found = visitors_.find(joiner);
  if (found == visitors_.end()) return;
  found->second.line.Say(message);
  ::eventfd_write(wake_fd_.get(), 1);
}

base::UniqueFd RejoinListener::Take(int joiner, const Patience& patience) {
  BufferedConnection line;
  {
    const std::lock_guard lock(mutex_);
    const auto found = visitors_.find(joiner);
    if (found == visitors_.end()) return base::UniqueFd();
    line = std::move(found->second.line);
    visitors_.erase(found);
    Changed();
  }
  return line.Flush(patience).ok() ? line.Release() : base::UniqueFd();
}

void RejoinListener::Dismiss(const absl::Status& why) {
  const std::lock_guard lock(mutex_);
  for (auto& [number, visitor] : visitors_) {
    if (!std::holds_alternative<Promise>(visitor.word)) continue;
    Answer(visitor, Refusal{why.code(), std::string(why.message())});
  }
  Changed();
}

void RejoinListener::Changed() {
  int asking = 0;
  for (const auto& [number, visitor] : visitors_) {
    asking += std::holds_alternative<JoinRequest>(visitor.word);
  }
  waiting_->store(asking);
  news_ = true;
  changed_.notify_all();
  ::eventfd_write(wake_fd_.get(), 1);
}

const Table* RejoinListener::FollowedBy(const std::string& group) const {
  const auto found = decided_.find(group);
  return found == decided_.end() ? nullptr : &found->second;
}

void RejoinListener::Answer(Visitor& visitor, const Message& message) {
  visitor.line.Say(message);
  visitor.word = LeaveAck{};
}

void RejoinListener::OnJoinRequest(Visitor& visitor, JoinRequest request) {
  if (IsMember(current_, request.self)) return Answer(visitor, Decided{current_, false});
  if (!leads_ && leader_.port == 0) return;  // in no group itself yet
  if (!leads_) return Answer(visitor, leader_);
  visitor.word = std::move(request);
}

void RejoinListener::OnMessage(Visitor& visitor, Message message) {
  if (Promise* const promise = std::get_if<Promise>(&message)) {
    const Table* const next = FollowedBy(promise->group);
    if (next != nullptr) return Answer(visitor, Decided{*next, false});
    visitor.word = std::move(*promise);
  } else if (const SuccessorQuery* const ask = std::get_if<SuccessorQuery>(&message)) {
    const Table* const next = FollowedBy(ask->group);
    if (next != nullptr) return Answer(visitor, Decided{*next, false});
    Answer(visitor, GroupStatus{current_.generation, static_cast<int>(current_.ranks.size()),
                                waiting_->load()});
  } else if (JoinRequest* const request = std::get_if<JoinRequest>(&message)) {
    OnJoinRequest(visitor, std::move(*request));
  } else if (std::holds_alternative<Accepted>(message)) {
    visitor.accepted = true;
  } else if (std::holds_alternative<Hello>(message)) {
    Answer(visitor, Refusal{absl::StatusCode::kFailedPrecondition,
                            "the group runs already; newcomers come by JoinRunning"});
  }
}

void RejoinListener::ReadFrom(int number, Visitor& visitor) {
  const bool open = visitor.line.Read() == BufferedConnection::End::kOpen;
  bool sense = true;
  while (sense) {
    absl::StatusOr<Message> message = visitor.line.Next(kLongestMessage);
    if (absl::IsNotFound(message.status())) break;
    sense = message.ok();
    if (sense) OnMessage(visitor, *std::move(message));
  }
  if (!open || !sense) visitors_.erase(number);
  Changed();
}

void RejoinListener::Run() {
  Lock lock(mutex_);
  auto next_beat = base::Deadline::After(beat_);
  while (!stopping_) {
    Poll(lock);
    if (!next_beat.Expired()) continue;
    next_beat = base::Deadline::After(beat_);
    for (auto& [number, visitor] : visitors_) {
      const bool keeps_up = visitor.line.unsent() < kMostUnsentBeats;
      if (IsKept(visitor.word) && keeps_up) visitor.line.Say(Progress{});
    }
  }
}

void RejoinListener::Poll(Lock& lock) {
  std::vector<pollfd> polled = {{wake_fd_.get(), POLLIN, 0}};
  // Whoever comes while so many are being heard waits in the system's queue.
  const bool rests = !rests_until_.Expired();
  const short wanted = rests || handshakes_.full() ? 0 : POLLIN;
  for (const base::UniqueFd& listener : listeners_) polled.push_back({listener.get(), wanted, 0});
  const size_t first = polled.size();
  std::vector<int> numbers;
  for (auto& [number, visitor] : visitors_) {
    visitor.line.Push();
    polled.push_back({visitor.line.fd(), visitor.line.events(), 0});
    numbers.push_back(number);
  }
  lock.unlock();
  const auto beat = base::Deadline::After(beat_);
  const auto until = rests ? base::Deadline::Sooner(beat, rests_until_) : beat;
  ::poll(polled.data(), polled.size(), until.RemainingMillis());
  lock.lock();
  eventfd_t drained;
  if (polled[0].revents != 0) ::eventfd_read(wake_fd_.get(), &drained);
  for (size_t i = 1; i < first; ++i) {
    if (polled[i].revents != 0) Welcome(polled[i].fd);
  }
  for (size_t i = first; i < polled.size(); ++i) {
    const auto found = visitors_.find(numbers[i - first]);
    const bool here = found != visitors_.end() && found->second.line.fd() == polled[i].fd;
    if (polled[i].revents != 0 && here) ReadFrom(found->first, found->second);
  }
}

void RejoinListener::Welcome(int listener) {
  absl::StatusOr<base::UniqueFd> fd =
      Accept(listener, {base::Deadline::After(absl::ZeroDuration())});
  if (!fd.ok()) {
    // While there are no descriptors the listener would stay readable.
    if (!absl::IsDeadlineExceeded(fd.status())) rests_until_ = base::Deadline::After(kListenerRest);
    return;
  }
  handshakes_.Begin(*std::move(fd), [this, number = next_number_++](base::UniqueFd socket) {
    const absl::Status known =
        Authenticate(socket.get(), Side::kListener, token_, kRendezvousPurpose,
                     {base::Deadline::After(kHandshake), stop_fd_.get()});
    if (!known.ok()) return;
    const std::lock_guard lock(mutex_);
    visitors_[number].line = BufferedConnection(std::move(socket));
  });
}

}  // namespace tutti::comm
