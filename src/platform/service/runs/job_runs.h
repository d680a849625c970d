// JobRuns gives each job a run in MLflow's tracking, where the service has that
// (docs/decisions/094-runs-of-jobs.md): it is there before the job's first line, has one id in all
// attempts, and ends as the job does. Its id follows from the job, so that nobody keeps it. The
// token of a job's run opens tracking from its beginning until some minutes after the job's end.
// What cannot be written now is written later; nothing here holds a job up. Thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/flow/metric_reports.h"
#include "platform/service/jobs/event_listener.h"
#include "platform/service/jobs/job_table.h"
#include "platform/service/jobs/shared_state.h"
#include "platform/service/logs/metric_series.h"
#include "platform/service/runs/metrics_to_run.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::service {

// How long after a job's end its token opens its run: what is on its way arrives.
inline constexpr absl::Duration kTracksOn = absl::Minutes(5);

// A job's run, as its launchers are told.
struct JobRun {
  std::string id;
  std::string experiment;  // its name
  std::string token;       // secret
};

// Returns the id of the job's run: 32 hexadecimal digits, of no other job, also not of one that has
// had its name.
std::string RunIdOf(const store::Job& job);

class JobRuns final : public EventListener {
 public:
  explicit JobRuns(SharedState& state);

  // Takes the jobs that an earlier service has left.
  void Rebuild(const JobTable& table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Ends the runs of jobs that ended without this, by a thread that nobody waits for.
  void EndPast();
  // Tries again what could not be written, now and then.
  void EndDue();
  // Has what tutti-train has reported logged to its jobs' runs, every few seconds.
  void LogDue();
  void OnEvent(const store::Job& job, const store::Event& event, const EventDetail& detail) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);

  // Lets the token of the job's run open it; before Begin, while the job has its nodes.
  void Open(const store::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Makes the job's run, or has it run again. NotFound where the service has no tracking; Aborted
  // if the job has ended meanwhile; errors of tracking::TrackingStore::BeginJobRun.
  absl::StatusOr<JobRun> Begin(const store::Job& job);
  // Returns whether the token of that run opens anything now.
  bool MayTrack(const std::string& run) const;
  // Returns the job's run (TrackingStore::GetJobRun); nothing if it has none.
  absl::StatusOr<std::optional<tracking::Run>> Find(const store::Job& job) const;
  // Adds what the job's run has as metrics of rank 0, but for those that are there from its metrics
  // file; nothing if it has none. Of a metric with more
  // than MetricSeries::kMostCourse points it takes as many, spread evenly: of a range of steps
  // those of the range.
  absl::Status AddTracked(const store::Job& job, const MetricQuery& query,
                          std::vector<ReportedMetric>& metrics) const;

 private:
  struct End {
    std::string run;
    tracking::RunStatus status = tracking::RunStatus::kFinished;
    int64_t time = 0;
    std::string job;
  };
  struct OpenRun {
    std::string job;
    absl::Duration until = absl::InfiniteDuration();  // since boot: so long its token opens it
    std::optional<End> end;                           // nothing: its job goes on
  };

  absl::StatusOr<MetricSeries> Sample(const std::string& run, const std::string& key,
                                      const tracking::StepRange& range) const;
  void Write(const End& end);
  void LogAll();
  // Logs what has come in the metrics file of the job that has that run (MetricsToRun). OK where it
  // has none. An error is one after which the same call may succeed later.
  absl::Status LogMetrics(const std::string& run, const std::string& job, bool to_the_end);
  absl::Status Finish(const End& end);
  // Ends those that the database has as not settled, up to the first that cannot be written.
  absl::Status EndUnsettled();
  // Returns nothing if the job goes on.
  absl::StatusOr<std::optional<End>> EndOf(const tracking::RunInfo& run);
  // Takes in how it went: after a failure there is another try later.
  void Note(const absl::Status& ended);
  bool HasEnded(const std::string& run) const;

  SharedState& state_;
  const std::string user_;     // of whom all jobs are
  mutable absl::Mutex mutex_;  // taken after the service's
  std::map<std::string, OpenRun> runs_ ABSL_GUARDED_BY(mutex_);
  // There may be runs to end, which the database knows.
  bool unsettled_ ABSL_GUARDED_BY(mutex_) = false;
  bool queued_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration pause_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_try_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool logging_ ABSL_GUARDED_BY(mutex_) = false;  // it is queued
  absl::Duration next_log_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  std::map<std::string, MetricsToRun> reported_;  // by run; of the thread of tracking_work
  std::string said_ ABSL_GUARDED_BY(mutex_);      // of what could not be written
};

// Returns what the job has logged of the metric by MLflow's tracking; nothing where the service has
// none. Reads databases.
absl::StatusOr<flow::MetricReports> TrackedReports(const SharedState& state, const std::string& job,
                                                   const std::string& metric);

}  // namespace tutti::service
