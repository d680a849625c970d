// LogStorage brings the logs of jobs that have ended to the stores that their files name, or their
// site (docs/decisions/080-logs-to-stores.md). That a job's logs are to be brought is in the
// database from the job's insertion on (store::LogsNote), and what is brought is the same each
// time: so a kill at any point leaves them to be brought again, and loses none.
//
//   the job's end -> a queue of its store -> bring_logs.h -> "stored"
//
// What one store does not take holds no other's: each has a queue and a turn of a thread. A store
// that is away is asked again after 5 s, then after twice as long, up to 10 minutes; so is what is
// wrong with one job alone, which lets the others pass. After 30 days the logs are given up with
// the last reason; what no later try helps is given up at once. Nothing is written to the database
// under the service's lock. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/threads/retry_pause.h"
#include "platform/service/jobs/event_listener.h"
#include "platform/service/jobs/shared_state.h"
#include "platform/service/secrets/secrets.h"

namespace tutti::service {

// The time runs from the job's end, or from the start of the service if that was later.
inline constexpr absl::Duration kLogsGivenUpAfter = absl::Hours(30 * 24);

class LogStorage final : public EventListener {
 public:
  // Brings the logs of the job of that sequence; returns and fails as BringLogs does.
  using Bring =
      std::function<absl::StatusOr<std::string>(const std::string& job, int64_t sequence)>;

  LogStorage(SharedState& state, const Secrets& secrets);
  LogStorage(SharedState& state, Bring bring) : state_(state), bring_(std::move(bring)) {}

  // Takes what an earlier service has left.
  absl::Status Rebuild() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Has those brought whose time has come, by threads of SharedState::log_work.
  void BringDue() ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  // Times are since boot.
  struct Pending {
    std::string job;
    int64_t sequence;         // the job's; another may have its name by now
    absl::Duration given_up;  // when it is
    base::RetryPause pauses;
    absl::Duration not_before = -absl::InfiniteDuration();
    std::string reason = {};  // that is noted
  };
  using Jobs = std::list<Pending>;
  struct Queue {
    std::string store;  // for messages
    base::RetryPause pauses;
    absl::Duration not_before = -absl::InfiniteDuration();
    bool busy = false;
    Jobs jobs = {};
  };
  // Holds what a thread has taken out of a queue: the job that is being brought, if there is one,
  // and those whose time is over.
  struct Turn {
    Jobs current, old;
  };

  void Add(const store::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the first job of the queue that may be tried now; end() if there is none.
  Jobs::iterator NextOf(Queue& queue) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Brings what is due of one queue, one job after another.
  void BringAll(const std::string& key) ABSL_LOCKS_EXCLUDED(service_lock);
  // Takes the next job out of the queue; false, at the end of the thread's turn, if none is due.
  bool TakeNext(const std::string& key, Turn& turn) ABSL_LOCKS_EXCLUDED(service_lock);
  // Takes what an exception has left of a turn back, and ends it. Allocates nothing.
  void GiveBack(const std::string& key, Turn& turn) ABSL_LOCKS_EXCLUDED(service_lock);
  // Notes what has become of the job.
  void NoteBrought(const std::string& key, Turn& turn, const absl::StatusOr<std::string>& brought)
      ABSL_LOCKS_EXCLUDED(service_lock);
  void TryLater(const std::string& key, Turn& turn, const absl::Status& failure)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Gives up those whose time is over.
  void GiveUpOld(const std::string& key, Turn& turn, const absl::Status& failure)
      ABSL_LOCKS_EXCLUDED(service_lock);
  void NoteProblem(const Queue& queue, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  SharedState& state_;
  const Bring bring_;
  // The keys say how each store is reached, so that credentials which are wrong hold no others.
  std::map<std::string, Queue> queues_ ABSL_GUARDED_BY(service_lock);
};

}  // namespace tutti::service
