// LogQueue writes what clients log on a thread of its own, so that nobody who waits for the disk
// holds a thread of the server: what has come while the disk was waited for is one transaction.
// Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::tracking {

class LogQueue {
 public:
  // Pending is one batch on its way. Thread-safe.
  class Pending {
   public:
    // Returns what has become of it, once it is on the disk or has failed.
    std::optional<absl::Status> result() const;

   private:
    friend class LogQueue;
    LogRequest request_;
    std::function<void()> wake_;
    mutable absl::Mutex mutex_;
    std::optional<absl::Status> result_ ABSL_GUARDED_BY(mutex_);
  };

  // `store` outlives it.
  explicit LogQueue(TrackingStore* store);
  // Ends after the transaction that is under way; what waits is not written.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // Has a batch written, and `wake` called by another thread once there is a result. Unavailable if
  // too much waits; InvalidArgument as CheckBatch has it.
  absl::StatusOr<std::shared_ptr<const Pending>> Add(std::string run, Batch batch,
                                                     std::function<void()> wake);

 private:
  using Batches = std::deque<std::shared_ptr<Pending>>;
  void Work();
  // Takes out what goes together; nothing at the end.
  Batches Await() ABSL_LOCKS_EXCLUDED(mutex_);
  void Write(const Batches& batches);

  TrackingStore* const store_;
  absl::Mutex mutex_;
  Batches waiting_ ABSL_GUARDED_BY(mutex_);
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // that wait
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::tracking
