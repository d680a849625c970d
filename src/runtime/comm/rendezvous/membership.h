// Keeps a rank's Roll true: a thread of its own beats, listens to the other ranks over the
// connections of the rendezvous, and wakes this rank's caller when the group has ended for it.
//
// Thread-safe. The caller's thread brackets every collective with Begin and End.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"
#include "runtime/comm/rendezvous/roll.h"

namespace tutti::comm {

class Membership {
 public:
  // `controls[r]` is the connection to rank r: all of them on rank 0, the one to rank 0 elsewhere.
  Membership(int rank, int size, std::vector<base::UniqueFd> controls, absl::Duration peer_timeout);
  // Says goodbye. Rank 0 first lets the others finish what it has finished (at most peer_timeout).
  ~Membership();

  // Starts the collective `what` ("all-reduce"). The error that has ended the group, if one has.
  absl::Status Begin(const char* what);
  void End();

  // OK, or the error that ends the collective in progress; CheckWithin waits for one for a while.
  // `ended()` is the same without a lock, and `ended_fd()` becomes readable with it.
  absl::Status Check() { return CheckWithin(absl::ZeroDuration()); }
  absl::Status CheckWithin(absl::Duration patience);
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  int ended_fd() const { return ended_fd_.get(); }

  // The caller has missed `accused`. Waits for the judgement (about a quarter of peer_timeout at
  // most) and returns it: never OK, and not always about `accused`.
  absl::Status Accuse(int accused, Reason reason);

 private:
  struct Link;

  void Run();
  void Listen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Hear(int from) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Flush() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Error(const Departure& departure) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasEnding() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return roll_.Ending().has_value(); }
  bool MayLeave() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return roll_.MayLeave() || ended(); }

  const int rank_;
  const absl::Duration peer_timeout_;
  base::UniqueFd ended_fd_;
  base::UniqueFd wake_fd_;
  std::atomic<bool> ended_ = false;

  absl::Mutex mutex_;
  Roll roll_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Link>> links_ ABSL_GUARDED_BY(mutex_);
  const char* what_ ABSL_GUARDED_BY(mutex_) = "the first collective";
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::comm
