#include "platform/http/server/open_connections.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace tutti::http {
namespace {

// One that was shut down closes as soon as a thread has its turn: longer than this is a fault.
constexpr absl::Duration kLongestToLeave = absl::Seconds(5);

}  // namespace

bool OpenConnections::WillOneCloseSoon() const {
  return std::any_of(open_.begin(), open_.end(),
                     [](const auto& entry) { return entry.second.leaving && entry.second.waits; });
}

size_t OpenConnections::Staying() const {
  return static_cast<size_t>(std::count_if(
      open_.begin(), open_.end(), [](const auto& entry) { return !entry.second.leaving; }));
}

size_t OpenConnections::UntrustedOf(const std::string& address) const {
  return static_cast<size_t>(std::count_if(open_.begin(), open_.end(), [&](const auto& entry) {
    const Entry& one = entry.second;
    return !one.leaving && one.party == Party::kStranger && one.address == address;
  }));
}

template <typename Fits>
bool OpenConnections::ShutDownOne(const Fits& fits) {
  auto longest = open_.end();
  for (auto at = open_.begin(); at != open_.end(); ++at) {
    const Entry& one = at->second;
    if (one.leaving || !one.waits || !fits(one)) continue;
    if (longest == open_.end() || one.since < longest->second.since) longest = at;
  }
  if (longest == open_.end()) return false;
  longest->second.leaving = true;
  spdlog::debug("connection from {} is closed: it waits, and another one needs its place",
                longest->second.address);
  ::shutdown(longest->first, SHUT_RDWR);
  return true;
}

bool OpenConnections::MakeRoom(const std::string& address) {
  const auto is_stranger_from_there = [&](const Entry& one) {
    return one.party == Party::kStranger && one.address == address;
  };
  if (UntrustedOf(address) >= most_untrusted_ && !ShutDownOne(is_stranger_from_there)) return false;
  return Staying() < most_ ||
         ShutDownOne([](const Entry& one) { return one.party == Party::kStranger; }) ||
         ShutDownOne([](const Entry&) { return true; });
}

bool OpenConnections::Add(int fd, const std::string& address) {
  absl::MutexLock lock(&mutex_);
  // Those that leave are still open: they are bounded, too. A newcomer waits for one of them:
  // refused, he would pay for untrusted ones who come faster than they go.
  const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return open_.size() < 2 * most_ || !WillOneCloseSoon();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&has_room), kLongestToLeave);
  if (open_.size() >= 2 * most_ || !MakeRoom(address)) return false;
  open_[fd] = {.address = address, .since = ++now_};
  return true;
}

void OpenConnections::Close(int fd) {
  absl::MutexLock lock(&mutex_);
  open_.erase(fd);
  ::close(fd);  // under the lock: nobody shuts down a number that was given to somebody else
}

void OpenConnections::Answers(int fd) {
  absl::MutexLock lock(&mutex_);
  open_.at(fd).waits = false;
}

void OpenConnections::Waits(int fd) {
  absl::MutexLock lock(&mutex_);
  Entry& one = open_.at(fd);
  one.waits = true;
  one.since = ++now_;
}

bool OpenConnections::Trust(int fd, Party party) {
  absl::MutexLock lock(&mutex_);
  Entry& one = open_.at(fd);
  if (one.party == party) return true;
  const auto is_of_party = [&](const Entry& other) {
    return !other.leaving && other.party == party;
  };
  const auto count = std::count_if(open_.begin(), open_.end(),
                                   [&](const auto& entry) { return is_of_party(entry.second); });
  if (static_cast<size_t>(count) >= MostOf(party) && !ShutDownOne(is_of_party)) return false;
  one.party = party;
  return true;
}

ConnectionCounts OpenConnections::Count() const {
  ConnectionCounts counts{.most = static_cast<int64_t>(most_),
                          .most_of_party = static_cast<int64_t>(most_of_party_),
                          .most_of_monitors = static_cast<int64_t>(most_of_monitors_)};
  absl::MutexLock lock(&mutex_);
  for (const auto& [fd, one] : open_) {
    if (one.party == Party::kStranger) ++counts.strangers;
    if (one.party == Party::kNode) ++counts.nodes;
    if (one.party == Party::kUser) ++counts.users;
    if (one.party == Party::kMonitor) ++counts.monitors;
  }
  return counts;
}

void OpenConnections::AwaitNone(absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  const auto none_left = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return open_.empty(); };
  if (mutex_.AwaitWithTimeout(absl::Condition(&none_left), grace)) return;
  for (const auto& [fd, one] : open_) ::shutdown(fd, SHUT_RDWR);
  mutex_.Await(absl::Condition(&none_left));
}

}  // namespace tutti::http
