// LauncherReports answers the calls of launchers: their events, output and result files, and the
// question whether they may start.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/deadline.h"
#include "platform/service/allocation/cluster_queue.h"
#include "platform/service/jobs/job_table.h"
#include "platform/service/questions/open_questions.h"
#include "platform/service/runs/job_runs.h"
#include "platform/service/service.h"

namespace tutti::service {

// Thread-safe.
class LauncherReports {
 public:
  LauncherReports(SharedState& state, const JobTable& table, const ClusterQueue& cluster_queue)
      : state_(state), table_(table), cluster_queue_(cluster_queue) {}

  // Do what the functions of Service of these names do. What ReportEvents acknowledges is on
  // the disk where that is asked for; the disk is waited for without the lock. A step that follows
  // from a report before that is an event behind it in the same log, so that no loss of power takes
  // the report alone.
  absl::StatusOr<Service::Acknowledgement> ReportEvents(absl::string_view allocation, int node,
                                                        int64_t first,
                                                        const std::vector<std::string>& lines)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<Service::Go> MayGo(absl::string_view allocation, int node)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<Subscription> OnNewsOfAllocation(absl::string_view allocation, int node,
                                                  std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<std::string> JobOf(absl::string_view allocation, int node)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns the job, whose run is open from then on (JobRuns::Open).
  absl::StatusOr<store::Job> JobToTrack(absl::string_view allocation, int node, JobRuns& runs)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns the names of the secrets that its job names, and that this launcher may have.
  absl::StatusOr<std::set<std::string>> SecretNamesFor(absl::string_view allocation, int node)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Status CheckUnderWay(absl::string_view allocation) ABSL_LOCKS_EXCLUDED(service_lock);
  std::vector<std::string> AllocationsUnderWay() ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<uint64_t> AppendOutput(absl::string_view allocation, int node, int rank,
                                        LogStream stream, uint64_t offset, absl::string_view bytes)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<absl::Duration> TakeUsage(absl::string_view allocation, int node,
                                           std::vector<spec::UsageSample> samples,
                                           std::optional<absl::Time> sent)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<spec::Questions> QuestionsFor(absl::string_view allocation, int node,
                                               OpenQuestions& questions)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<std::unique_ptr<IncomingFile>> ReceiveFile(absl::string_view allocation, int node,
                                                            absl::string_view path, uint64_t bytes,
                                                            bool so_far)
      ABSL_LOCKS_EXCLUDED(service_lock);

  absl::StatusOr<std::vector<absl::Status>> ReceiveFiles(absl::string_view allocation, int node,
                                                         const std::vector<http::BatchFile>& files,
                                                         bool so_far)
      ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  // Returns `status`, of a write of up to `bytes`. Where the disk is full its job says so, and that
  // `what` waits for it.
  absl::Status NoteFullDisk(absl::string_view allocation, const char* what, absl::Status status,
                            uint64_t bytes = 0) ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Status NoteResultsWait(absl::string_view allocation, absl::Status status, bool so_far,
                               uint64_t bytes = 0) ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns what gives the results of a node their names beside those of the others.
  MoveResult MoveResultsOf(absl::string_view allocation, int node)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Takes room for a file that begins, and gives it back where that leaves too little for others.
  absl::Status Reserve(IncomingFile& file, uint64_t bytes);
  // Sets `sync` if the disk is to be waited for.
  absl::StatusOr<Service::Acknowledgement> Keep(absl::string_view allocation, int node,
                                                int64_t first,
                                                const std::vector<std::string>& lines, bool& sync)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns the job that has its nodes there, by a launcher's own call: a sign of life. Aborted if
  // there is none. One that only `asks` is silent all the same once it has been told to stop.
  absl::StatusOr<LiveJob*> Placed(absl::string_view allocation, int node, bool asks = false)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Reads the store, and so waits for others who read.
  absl::StatusOr<Service::Acknowledgement> AnswerForEndedJob(absl::string_view allocation, int node,
                                                             int64_t last)
      ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const JobTable& table_;
  const ClusterQueue& cluster_queue_;
};

// Returns the nodes of a job with the ranks there that are asked.
std::vector<AskedNode> NodesToAsk(const PlacedJob& placed, const QuestionQuery& query);
// Returns how long a launcher that has not asked for questions yet may take to do so.
absl::Duration UnheardAfter(const SharedState& state);

}  // namespace tutti::service
