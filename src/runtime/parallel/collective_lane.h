// The one thread that talks to the other ranks. Collectives run in the order in which they were
// issued, so that ranks that issue the same sequence (gradient buckets and batch-norm sums mixed)
// always meet in the same one. The first error ends the lane: what is issued later fails with it.
//
// A group of one has no thread and runs nothing. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "runtime/comm/communicator.h"

namespace tutti::parallel {

class CollectiveLane {
 public:
  using Collective = std::function<absl::Status(comm::Communicator&)>;

  explicit CollectiveLane(std::unique_ptr<comm::Communicator> communicator);
  // Drops what has not begun and waits for what has (its own deadline bounds that).
  ~CollectiveLane();

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }

  // Queues it and returns its ticket. Its memory must live until Wait returned OK or the lane went.
  int64_t Issue(Collective collective);
  // Until that collective and all before it are done.
  absl::Status Wait(int64_t ticket, base::Deadline deadline);
  absl::Status Run(Collective collective, base::Deadline deadline) {
    return Wait(Issue(std::move(collective)), deadline);
  }
  // The first error, or OK.
  absl::Status status() const;

 private:
  void Serve();

  std::unique_ptr<comm::Communicator> communicator_;
  mutable absl::Mutex mutex_;
  std::deque<Collective> queue_ ABSL_GUARDED_BY(mutex_);
  int64_t issued_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tutti::parallel
