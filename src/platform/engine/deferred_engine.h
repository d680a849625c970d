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
#include <utility>
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
  // May take long; called by one thread at a time, until it succeeds. What it needs is its own: a
  // call that hangs outlives the DeferredEngine.
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

  // Waits two seconds for a try that TryNow has begun. One that hangs longer is left to its thread,
  // so that a process ends which cannot begin for another reason.
  ~DeferredEngine() override;

  // Makes the first try, on a thread of its own, and waits for its end as long as `patience`; the
  // try goes on after that. Returns why it has failed; OK if it has not. Call it at most once,
  // before any other call.
  absl::Status TryNow(absl::Duration patience);

  EngineTraits traits() const override { return state_->options.traits; }
  std::string WhyOutOfReach() const override;
  absl::StatusOr<std::vector<Node>> ListNodes() override;
  // Returns "" until it is open.
  std::string WhyNeverOn(const spec::SlurmSettings& job, base::Deadline deadline) override;
  std::string SharedFolder() const override;
  absl::Status Start(const Allocation& allocation) override;
  absl::Status Stop(const std::string& allocation_id, absl::Duration grace) override;
  absl::Status StopPatiently(const std::string& allocation_id, absl::Duration grace) override;
  absl::Status Kill(const std::string& allocation_id, int node_index) override;
  absl::StatusOr<std::vector<AllocationState>> Observe() override;
  void Refresh() override;
  absl::Status Release(const std::string& allocation_id) override;

 private:
  // State is what a try works on; its thread shares it.
  struct State {
    State(DeferredEngineOptions with, const base::Clock* by)
        : options(std::move(with)), clock(by), pause(options.first_pause, options.longest_pause) {}

    // Returns the engine after a try, if one is due; Unavailable if it is not open.
    absl::StatusOr<Engine*> OpenIfDue() ABSL_LOCKS_EXCLUDED(mutex);
    std::string Reason() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
    bool FirstTryHasEnded() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return engine != nullptr || !failure.ok();
    }

    const DeferredEngineOptions options;
    const base::Clock* const clock;  // not after `left`
    mutable absl::Mutex mutex;       // not held while the engine is opened or called
    std::unique_ptr<Engine> engine ABSL_GUARDED_BY(mutex);  // set once
    // Since boot; of the try that is under way.
    std::optional<absl::Duration> opening_since ABSL_GUARDED_BY(mutex);
    absl::Status failure ABSL_GUARDED_BY(mutex);  // of the last try; OK: none has ended
    absl::Time since ABSL_GUARDED_BY(mutex);      // of the first one
    base::RetryPause pause ABSL_GUARDED_BY(mutex);
    absl::Duration next_try ABSL_GUARDED_BY(mutex) = -absl::InfiniteDuration();  // since boot
    bool left ABSL_GUARDED_BY(mutex) = false;  // by its DeferredEngine, which has gone
  };

  // Returns the engine; Unavailable if it is not open.
  absl::StatusOr<Engine*> Opened() const;
  // Returns the same once the first try has ended.
  absl::StatusOr<Engine*> AwaitFirstTry(base::Deadline deadline);

  const std::shared_ptr<State> state_;
  const base::Deadline patience_;
  std::thread first_try_;
};

}  // namespace tutti::engine
