#include "http/server/open_connections.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace tutti::http {
namespace {

// A connection that was shut down closes as soon as a thread runs its turn: if that takes longer
// than this, something is wrong.
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
    return !one.leaving && one.role == Role::kStranger && one.address == address;
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
    return one.role == Role::kStranger && one.address == address;
  };
  if (UntrustedOf(address) >= most_untrusted_ && !ShutDownOne(is_stranger_from_there)) return false;
  return Staying() < most_ ||
         ShutDownOne([](const Entry& one) { return one.role == Role::kStranger; }) ||
         ShutDownOne([](const Entry&) { return true; });
}

bool OpenConnections::Add(int fd, const std::string& address) {
  absl::MutexLock lock(&mutex_);
  // The connections that are about to close are still open, so that they are bounded, too. A new
  // one waits until one of them has closed. If it were refused, untrusted clients that connect
  // faster than they leave could keep it out.
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

void OpenConnections::MarkAnswering(int fd) {
  absl::MutexLock lock(&mutex_);
  open_.at(fd).waits = false;
}

void OpenConnections::MarkWaiting(int fd) {
  absl::MutexLock lock(&mutex_);
  Entry& one = open_.at(fd);
  one.waits = true;
  one.since = ++now_;
}

bool OpenConnections::Trust(int fd, Role role) {
  absl::MutexLock lock(&mutex_);
  Entry& one = open_.at(fd);
  if (one.role == role) return true;
  const auto has_role = [&](const Entry& other) { return !other.leaving && other.role == role; };
  const auto count = std::count_if(open_.begin(), open_.end(),
                                   [&](const auto& entry) { return has_role(entry.second); });
  if (static_cast<size_t>(count) >= MostOf(role) && !ShutDownOne(has_role)) return false;
  one.role = role;
  return true;
}

ConnectionCounts OpenConnections::Count() const {
  ConnectionCounts counts{.most = static_cast<int64_t>(most_),
                          .most_per_role = static_cast<int64_t>(most_per_role_),
                          .most_of_monitors = static_cast<int64_t>(most_of_monitors_)};
  absl::MutexLock lock(&mutex_);
  for (const auto& [fd, one] : open_) {
    if (one.role == Role::kStranger) ++counts.strangers;
    if (one.role == Role::kNode) ++counts.nodes;
    if (one.role == Role::kUser) ++counts.users;
    if (one.role == Role::kMonitor) ++counts.monitors;
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
