// Rank 0's side of the rendezvous. Every connection is heard on a thread of its own, so that a
// stranger that connects and says nothing holds nobody up; it gets kHandshakeTimeout, and its
// failure is remembered only to be told if the group does not come together.
#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/rendezvous.h"
#include "runtime/comm/rendezvous/socket.h"

namespace tutti::comm {

inline constexpr absl::Duration kHandshakeTimeout = absl::Seconds(5);
inline constexpr char kRendezvousPurpose[] = "rendezvous";

class Reception {
 public:
  Reception(const GroupOptions& options, const Hello& self);
  ~Reception();

  // Once.
  absl::StatusOr<Meeting> Receive();

 private:
  struct Guest {
    Hello hello;
    base::UniqueFd fd;
  };

  void Hear(base::UniqueFd fd);
  absl::StatusOr<Hello> Introduce(int fd) const;
  void Admit(Hello hello, base::UniqueFd fd);
  absl::Status CheckGuest(const Hello& hello) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitAll(int listener);
  absl::Status Absent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Dismiss(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Meeting> Conclude() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const GroupOptions& options_;
  const Hello& self_;
  const base::Deadline deadline_;
  base::UniqueFd done_;  // readable when all have come or one came that must not be
  absl::Mutex mutex_;
  std::map<int, Guest> guests_ ABSL_GUARDED_BY(mutex_);
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
  std::string refused_ ABSL_GUARDED_BY(mutex_);  // the last stranger's fault
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;
  int hearing_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace tutti::comm
