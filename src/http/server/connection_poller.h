// ConnectionPoller holds the connections that wait for their sockets, for news or for a time, so
// that none of them needs a thread: one thread polls for all. Thread-safe. Internal to this room.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "base/unique_fd.h"
#include "http/server/handler_pool.h"

namespace tutti::http {

class ServerConnection;

// Waiting says what a connection waits for: any of these resumes it.
struct Waiting {
  // POLLIN or POLLOUT. A client that has gone always resumes the connection; one that has only
  // stopped sending does so unless POLLIN is waited for.
  short events = 0;
  bool news = false;  // a call of Wake
  base::Deadline until;
  Lane lane = Lane::kProtocol;  // in which it is resumed
  uint64_t ticket = 0;          // which Take must show
};

class ConnectionPoller {
 public:
  using Id = uint64_t;
  // Is called under the poller's lock, and must hand the connection on to another thread.
  using Resume = std::function<void(Id, const std::shared_ptr<ServerConnection>&, Lane)>;

  explicit ConnectionPoller(Resume resume);
  ~ConnectionPoller();
  absl::Status Start();

  // Adds a connection, which does not wait yet. Returns its number, which no other gets.
  Id Add(int fd, std::function<std::shared_ptr<ServerConnection>(Id)> make);
  // Resumes the connection, once, when something that it waits for has happened; at once if Wake
  // was called since it was last resumed from a wait for news, or WakeAll since it was last
  // resumed. Its last wait must be over.
  void Await(Id id, const Waiting& waiting);
  // Ends the wait with that ticket, so that the caller goes on with the connection. False if the
  // connection has been resumed already.
  bool Take(Id id, uint64_t ticket);
  // Tells a connection that there may be news. Does nothing if the connection is gone.
  void Wake(Id id);
  // Removes a connection; call it before its descriptor is closed.
  void Remove(Id id);
  // Resumes each connection once, now or when it waits next.
  void WakeAll();
  // Ends the thread; no connection is resumed any more.
  void Stop();

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Entry {
    int fd = -1;
    std::shared_ptr<ServerConnection> connection;
    bool armed = false;  // epoll knows its descriptor
    bool waits = false;
    bool woken = false;
    bool goes_on = false;  // WakeAll: it is resumed whatever it waits for
    Waiting waiting{.until = base::Deadline::After(absl::ZeroDuration())};
  };
  void Loop();
  int NextTimeout() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResumeLate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ResumeOne(Id id, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Kick();

  const Resume resume_;
  base::UniqueFd epoll_, kick_;
  std::thread thread_;
  absl::Mutex mutex_;
  std::map<Id, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<Time, Id>> times_ ABSL_GUARDED_BY(mutex_);
  Id last_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tutti::http
