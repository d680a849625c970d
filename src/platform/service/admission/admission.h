// Admission takes jobs in: it has them checked, and puts them into the store in one transaction. A
// job that can start at once is in that transaction with its placement.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/service/admission/submission.h"
#include "platform/service/admission/submission_check.h"
#include "platform/service/allocation/engine_calls.h"
#include "platform/service/allocation/local_scheduler.h"
#include "platform/service/jobs/insertions.h"
#include "platform/service/jobs/job_views.h"

namespace tutti::service {

class Admission {
 public:
  Admission(SharedState& state, JobTable& table, const JobViews& views, Insertions& insertions,
            LocalScheduler& scheduler, EngineCalls& engines, Secrets& secrets)
      : state_(state),
        check_(state, secrets),
        table_(table),
        views_(views),
        insertions_(insertions),
        scheduler_(scheduler),
        engines_(engines),
        secrets_(secrets) {}

  // Do what Service::Submit and Service::Check do.
  absl::StatusOr<JobStatus> Submit(const Submission& submission) ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<std::vector<std::string>> Check(const Submission& submission) const
      ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  // Returns the job that a submission with this nonce became, on the disk; nothing if there is
  // none.
  absl::StatusOr<std::optional<JobStatus>> Known(const Submission& submission)
      ABSL_LOCKS_EXCLUDED(service_lock);
  absl::StatusOr<JobStatus> SubmitNew(const Submission& submission)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // `looked`, since boot: before its inputs were looked for.
  absl::StatusOr<JobStatus> Insert(const store::Job& job, bool named, absl::Duration looked)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Announces its name, and holds nodes for it if it can start at once.
  absl::StatusOr<std::optional<Placement>> BeginInsert(const store::Job& job, absl::Duration looked)
      ABSL_LOCKS_EXCLUDED(service_lock);
  void EndInsert(const store::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Returns the jobs whose results are its inputs.
  std::set<std::string> InputsOf(const store::Job& job) const;
  // Takes in what is on the disk, and says what has become of it. `placed`: as the record's last
  // event has it, if it does.
  JobStatus Adopt(const store::JobRecord& record, std::vector<FirstEvent> events,
                  std::unique_ptr<PlacedJob> placed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock);
  // Makes the job and opens its logs, unless their disk would have its submitter wait.
  std::unique_ptr<PlacedJob> OpenPlaced(const std::string& id, Placement placement)
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Starts its launchers, and waits until it is on the disk. One that does not get there is
  // canceled.
  absl::Status StartAndSync(const std::string& id) ABSL_LOCKS_EXCLUDED(service_lock);

  SharedState& state_;
  const SubmissionCheck check_;
  JobTable& table_;
  const JobViews& views_;
  Insertions& insertions_;
  LocalScheduler& scheduler_;
  EngineCalls& engines_;
  Secrets& secrets_;
};

}  // namespace tutti::service
