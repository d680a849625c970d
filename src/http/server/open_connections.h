// OpenConnections counts a server's connections, and decides which one is closed to make room for
// another. A connection that waits for its client (for the first byte, TLS, a header, the next
// request) may be closed at any time; one whose request is being answered may not, unless it is a
// stranger's. Strangers cannot keep others out: each address has a limit for them, and their
// connections are closed first. Nodes may have three quarters of all connections, and so may users,
// so that neither keeps the other out; monitors have a few. Thread-safe. Internal to this room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "http/server/server.h"

namespace tutti::http {

class OpenConnections {
 public:
  // Allows `most` connections in all, and `most_untrusted` untrusted ones of one address.
  OpenConnections(int most, int most_untrusted)
      : most_(static_cast<size_t>(most)),
        most_untrusted_(static_cast<size_t>(most_untrusted)),
        most_per_role_(most_ - most_ / 4),
        most_of_monitors_(std::clamp<size_t>(most_ / 16, 1, 16)) {}

  // Adds `fd`, which is untrusted and waits for its client. Where there is no room, the connection
  // that has waited longest is shut down: an untrusted one of this address if the address has all
  // that it may, else any untrusted one, else any. Returns false, and does not add `fd`, if no
  // connection waits. A connection that was shut down counts until it is closed: while there are as
  // many of them as `most`, Add waits for one.
  bool Add(int fd, const std::string& address);
  // Removes the connection and closes its descriptor.
  void Close(int fd);

  void MarkAnswering(int fd);  // the request of a trusted client has arrived
  void MarkWaiting(int fd);    // the server waits for the client again
  // Notes that the client of `fd` has proved its role, which is not kStranger. If that role has all
  // the connections that it may, the one of them that has waited longest is shut down; false if
  // none waits.
  bool Trust(int fd, Role role);
  ConnectionCounts Count() const;

  // Waits up to `grace` until no connection is left, then shuts the rest down and waits for them.
  void AwaitNone(absl::Duration grace);

 private:
  struct Entry {
    std::string address;
    Role role = Role::kStranger;
    bool waits = true;
    bool leaving = false;  // was shut down, and is closed soon
    int64_t since = 0;     // when it began to wait, by now_
  };
  template <typename Fits>
  bool ShutDownOne(const Fits& fits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WillOneCloseSoon() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t Staying() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t MostOf(Role role) const {
    return role == Role::kMonitor ? most_of_monitors_ : most_per_role_;
  }
  size_t UntrustedOf(const std::string& address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  const size_t most_untrusted_;
  const size_t most_per_role_, most_of_monitors_;
  mutable absl::Mutex mutex_;
  std::map<int, Entry> open_ ABSL_GUARDED_BY(mutex_);
  int64_t now_ ABSL_GUARDED_BY(mutex_) = 0;  // counts, to give the waits an order
};

}  // namespace tutti::http
