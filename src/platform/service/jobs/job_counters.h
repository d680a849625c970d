// JobCounters counts what happens to jobs while this service runs, for who watches it. Nothing of
// it is kept: a monitor expects counters to begin anew with a process.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "absl/time/time.h"
#include "base/metrics/histogram.h"
#include "platform/service/diagnosis/failure_kind.h"
#include "platform/service/jobs/event_listener.h"

namespace tutti::service {

// These bounds are for how long jobs wait and run.
inline constexpr std::array kJobBounds = {
    absl::Milliseconds(10), absl::Milliseconds(100), absl::Seconds(1), absl::Seconds(10),
    absl::Minutes(1),       absl::Minutes(10),       absl::Hours(1),   absl::Hours(6),
    absl::Hours(24),        absl::Hours(24 * 7)};

// Says what is submitted: kChild is a step of a pipeline or a trial of a sweep, whatever it is
// itself.
enum class SubmissionKind { kCommand, kPipeline, kSweep, kChild };
inline constexpr std::array kSubmissionKinds = {SubmissionKind::kCommand, SubmissionKind::kPipeline,
                                                SubmissionKind::kSweep, SubmissionKind::kChild};
absl::string_view Name(SubmissionKind kind);  // "command"

class JobCounters final : public EventListener {
 public:
  struct Counts {
    std::map<store::JobState, int64_t> entered;  // how often a job has come into that state
    std::map<SubmissionKind, int64_t> submitted;
    int64_t restarts = 0;  // jobs that begin again, as after the loss of a node
    std::map<FailureKind, int64_t> failures;
    // From a job's submission until all its processes run for the first time.
    base::Histogram waits{kJobBounds};
    base::Histogram runs{kJobBounds};  // of jobs that have ended, since they ran last
  };

  void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  const Counts& counts() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) { return counts_; }

 private:
  Counts counts_ ABSL_GUARDED_BY(service_lock);
  // Says when a job that has not ended began to run, and the state that it is in. Nothing is known
  // of those that an earlier service began.
  struct Known {
    store::JobState state = store::JobState::kQueued;
    bool submitted_here = false;
    absl::Time running = absl::InfinitePast();
    bool began = false;  // its processes were started, in the present attempt
  };
  void CountFailure(const store::Job& job, const EventDetail& detail, bool began)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  std::unordered_map<int64_t, Known> live_ ABSL_GUARDED_BY(service_lock);
};

}  // namespace tutti::service
