#include "http/server/connection_poller.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/status.h"

namespace tutti::http {
namespace {

constexpr ConnectionPoller::Id kKick = 0;  // no connection's

}  // namespace

ConnectionPoller::ConnectionPoller(Resume resume) : resume_(std::move(resume)) {}

ConnectionPoller::~ConnectionPoller() { Stop(); }

absl::Status ConnectionPoller::Start() {
  epoll_ = base::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  kick_ = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kKick}};
  if (!epoll_.valid() || !kick_.valid() ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, kick_.get(), &event) != 0) {
    return base::ErrnoStatus("epoll");
  }
  thread_ = std::thread([this] { Loop(); });
  return absl::OkStatus();
}

ConnectionPoller::Id ConnectionPoller::Add(
    int fd, std::function<std::shared_ptr<ServerConnection>(Id)> make) {
  Id id;
  {
    absl::MutexLock lock(&mutex_);
    id = ++last_;
  }
  std::shared_ptr<ServerConnection> connection = make(id);
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_[id];
  entry.fd = fd;
  entry.connection = std::move(connection);
  resume_(id, entry.connection, Lane::kProtocol);
  return id;
}

void ConnectionPoller::Await(Id id, const Waiting& waiting) {
  absl::MutexLock lock(&mutex_);
  Entry& entry = entries_.at(id);
  entry.waiting = waiting;
  entry.waits = true;
  const Time until = waiting.until.time_point();
  times_.emplace(until, id);
  if (entry.goes_on || (waiting.news && entry.woken)) return ResumeOne(id, entry);
  // A client that sends no more may still read: where it does not, there is nothing to do for it.
  const uint32_t end = (waiting.events & POLLOUT) != 0 ? 0u : uint32_t{EPOLLRDHUP};
  epoll_event event{.events = EPOLLONESHOT | end | static_cast<uint32_t>(waiting.events),
                    .data = {.u64 = id}};
  const int how = entry.armed ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_.get(), how, entry.fd, &event) != 0) {
    spdlog::error("epoll: {}", std::strerror(errno));
    return ResumeOne(id, entry);
  }
  entry.armed = true;
  if (times_.begin()->second == id) Kick();
}

bool ConnectionPoller::Take(Id id, uint64_t ticket) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.waits) return false;
  Entry& entry = found->second;
  if (entry.waiting.ticket != ticket) return false;
  times_.erase({entry.waiting.until.time_point(), id});
  entry.waits = false;
  return true;
}

void ConnectionPoller::Wake(Id id) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  found->second.woken = true;
  if (found->second.waits && found->second.waiting.news) ResumeOne(id, found->second);
}

void ConnectionPoller::Remove(Id id) {
  std::shared_ptr<ServerConnection> kept;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(id);
  kept = std::move(found->second.connection);
  if (found->second.armed) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  entries_.erase(found);
}

void ConnectionPoller::WakeAll() {
  absl::MutexLock lock(&mutex_);
  for (auto& [id, entry] : entries_) {
    entry.goes_on = true;
    if (entry.waits) ResumeOne(id, entry);
  }
}

void ConnectionPoller::ResumeOne(Id id, Entry& entry) {
  times_.erase({entry.waiting.until.time_point(), id});
  entry.waits = false;
  entry.goes_on = false;
  if (entry.waiting.news) entry.woken = false;
  resume_(id, entry.connection, entry.waiting.lane);
}

int ConnectionPoller::NextTimeout() {
  if (times_.empty()) return -1;
  const auto left = times_.begin()->first - std::chrono::steady_clock::now();
  const auto millis = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::clamp<int64_t>(millis, 0, 60'000));
}

void ConnectionPoller::ResumeLate() {
  const Time now = std::chrono::steady_clock::now();
  while (!times_.empty() && times_.begin()->first <= now) {
    const Id id = times_.begin()->second;
    ResumeOne(id, entries_.at(id));
  }
}

void ConnectionPoller::Loop() {
  epoll_event events[64];
  int timeout = -1;
  while (true) {
    const int count = ::epoll_wait(epoll_.get(), events, std::size(events), timeout);
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    for (int i = 0; i < count; ++i) {
      const Id id = events[i].data.u64;
      if (id == kKick) {
        uint64_t kicks;
        [[maybe_unused]] const ssize_t n = ::read(kick_.get(), &kicks, sizeof kicks);
        continue;
      }
      const auto found = entries_.find(id);
      if (found != entries_.end() && found->second.waits) ResumeOne(id, found->second);
    }
    ResumeLate();
    timeout = NextTimeout();
  }
}

void ConnectionPoller::Kick() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(kick_.get(), &one, sizeof one);
}

void ConnectionPoller::Stop() {
  if (!thread_.joinable()) return;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Kick();
  thread_.join();
}

}  // namespace tutti::http
