// OpenConnections counts a server's connections, and decides which one is closed to make room for
// another. One that waits for its client (for the first byte, TLS, a header, the next request) may
// be closed at any time; one whose request is being answered may not, unless it is a stranger's.
// Nobody who has not proved who he is can keep others out: strangers have a share for each address,
// and they go first. Nodes and users leave a quarter to others, so that neither keeps the other
// out; monitors have a few. Thread-safe. Internal to this room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/http/server/server.h"

namespace tutti::http {

class OpenConnections {
 public:
  // Allows `most` in all; an address may have `most_untrusted` that are not trusted.
  OpenConnections(int most, int most_untrusted)
      : most_(static_cast<size_t>(most)),
        most_untrusted_(static_cast<size_t>(most_untrusted)),
        most_of_party_(most_ - most_ / 4),
        most_of_monitors_(std::clamp<size_t>(most_ / 16, 1, 16)) {}

  // Takes `fd`, which is not trusted and waits. Where there is no room the one that has waited for
  // longest is shut down: of untrusted ones of this address if their share is full, else of all
  // untrusted ones, else of all. False if none waits: then it is not taken. Those that were shut
  // down are open until they are closed: while they are as many as `most`, waits for one.
  bool Add(int fd, const std::string& address);
  // Removes it and closes it: from then on its number may be another's.
  void Close(int fd);

  void Answers(int fd);  // the request is here of one who is no stranger
  void Waits(int fd);    // its client's turn
  // Notes that the client of `fd` has proved to be of that party, which is no stranger. Where the
  // party has its share, the one of it that has waited for longest is shut down; false if none
  // waits.
  bool Trust(int fd, Party party);
  ConnectionCounts Count() const;

  // Waits until there are none, up to `grace`; then shuts the rest down and waits for them.
  void AwaitNone(absl::Duration grace);

 private:
  struct Entry {
    std::string address;
    Party party = Party::kStranger;
    bool waits = true;
    bool leaving = false;  // was shut down, and is closed soon
    int64_t since = 0;     // when it began to wait; a count
  };
  template <typename Fits>
  bool ShutDownOne(const Fits& fits) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WillOneCloseSoon() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t Staying() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t MostOf(Party party) const {
    return party == Party::kMonitor ? most_of_monitors_ : most_of_party_;
  }
  size_t UntrustedOf(const std::string& address) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MakeRoom(const std::string& address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  const size_t most_untrusted_;
  const size_t most_of_party_, most_of_monitors_;
  mutable absl::Mutex mutex_;
  std::map<int, Entry> open_ ABSL_GUARDED_BY(mutex_);
  int64_t now_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tutti::http
