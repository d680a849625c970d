// DeferredEngine stands for an engine that cannot always be opened: its folder is on a server that
// is away, another service holds it, its settings are wrong. It opens the engine as soon as that is
// possible, and hands every call on to it from then on.
//
// Observe opens it: its caller calls that again and again, on a thread that nobody else waits for,
// so an engine whose opening hangs holds up nothing else. TryNow does it first, for who wants to
// know of a fault that shows at once. After a failure Observe does not try again for a second, then
// for two, and so on up to a minute. Until the engine is open, calls that need it are Unavailable,
// say why and since when, and change nothing.
//
// Thread-safe. An engine that is open stays open.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/threads/retry_pause.h"
#include "platform/engine/engine.h"

namespace tutti::engine {

struct DeferredEngineOptions {
  EngineTraits traits;  // of the engine that `open` makes
  // May take long; called by one thread at a time, until it succeeds.
  std::function<absl::StatusOr<std::unique_ptr<Engine>>()> open;
  absl::Duration first_pause = absl::Seconds(1);    // after the first failure, ...
  absl::Duration longest_pause = absl::Minutes(1);  // ... as base::RetryPause has them
  // How long after this object was made ListNodes and WhyNeverOn wait for the end of the first try.
  absl::Duration patience = absl::Seconds(3);
  // Its nodes, if they are known before it is open: ListNodes tells them then.
  std::vector<Node> nodes = {};
};

class DeferredEngine final : public Engine {
 public:
  // `clock` outlives it.
  DeferredEngine(DeferredEngineOptions options, const base::Clock* clock);

  // Waits for a try that TryNow has begun, however long that takes.
  ~DeferredEngine() override;

  // Makes the first try, on a thread of its own, and waits for its end as long as `patience`; the
  // try goes on after that. Returns why it has failed; OK if it has not. Call it at most once,
  // before any other call.
  absl::Status TryNow(absl::Duration patience);

  EngineTraits traits() const override { return options_.traits; }
  std::string WhyOutOfReach() const override;
  absl::StatusOr<std::vector<Node>> ListNodes() override;
  // Returns "" until it is open.
  std::string WhyNeverOn(const spec::SlurmSettings& job, base::Deadline deadline) override;
  std::string SharedFolder() const override;
  absl::Status Start(const Allocation& allocation) override;
  absl::Status Stop(const std::string& allocation_id, absl::Duration grace) override;
  absl::Status Kill(const std::string& allocation_id, int node_index) override;
  absl::StatusOr<std::vector<AllocationState>> Observe() override;
  void Refresh() override;
  absl::Status Release(const std::string& allocation_id) override;

 private:
  // Returns the engine; Unavailable if it is not open.
  absl::StatusOr<Engine*> Opened() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the same after a try, if one is due.
  absl::StatusOr<Engine*> OpenIfDue() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the same once the first try has ended.
  absl::StatusOr<Engine*> AwaitFirstTry(base::Deadline deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  std::string Reason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FirstTryHasEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return engine_ != nullptr || !failure_.ok();
  }

  const DeferredEngineOptions options_;
  const base::Clock* const clock_;
  const base::Deadline patience_;
  mutable absl::Mutex mutex_;  // not held while the engine is opened or called
  std::unique_ptr<Engine> engine_ ABSL_GUARDED_BY(mutex_);  // set once
  // Since boot; of the try that is under way.
  std::optional<absl::Duration> opening_since_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // of the last try; OK: none has ended
  absl::Time since_ ABSL_GUARDED_BY(mutex_);      // of the first one
  base::RetryPause pause_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_try_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();  // since boot
  std::thread first_try_;
};

}  // namespace tutti::engine
