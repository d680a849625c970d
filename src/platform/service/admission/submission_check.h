// Reads a submission and finds every fault that can be known before its job runs. Thread-safe.
#pragma once

#include <map>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "base/faults.h"
#include "platform/service/admission/remote_paths.h"
#include "platform/service/admission/submission.h"
#include "platform/service/jobs/shared_state.h"
#include "platform/service/secrets/secrets.h"
#include "spec/file/job_file.h"
#include "spec/site/kept_site.h"

namespace tutti::service {

class SubmissionCheck {
 public:
  SubmissionCheck(SharedState& state, const Secrets& secrets)
      : state_(state),
        secrets_(secrets),
        site_(state.options.directory, [&state](const spec::AssetReference& reference) {
          return FindModelOf(state, reference);
        }) {}

  // Reads the job; InvalidArgument names every fault. Unavailable if files that it names are on a
  // server that does not answer.
  absl::StatusOr<spec::ReadResult> Read(const Submission& submission) const
      ABSL_LOCKS_EXCLUDED(service_lock);
  // Returns the same as a job without an id, with the snapshots of its code.
  absl::StatusOr<store::Job> ToJob(const Submission& submission) const
      ABSL_LOCKS_EXCLUDED(service_lock);

 private:
  static absl::StatusOr<spec::ModelHere> FindModelOf(SharedState& state,
                                                     const spec::AssetReference& reference);
  // Checks whether the computes of it and of all below it are there and have as many nodes as it
  // takes; and why those that are cannot be used yet.
  void CheckComputes(const spec::JobSpec& job, base::Faults& faults,
                     std::set<std::string>& out_of_reach) const ABSL_LOCKS_EXCLUDED(service_lock);
  absl::Status CheckCompute(const spec::JobSpec& job) const ABSL_LOCKS_EXCLUDED(service_lock);
  // Checks whether they have what it asks of them; blocks until `deadline` at most.
  void CheckOffers(const spec::JobSpec& job, base::Deadline deadline,
                   std::set<std::string>& faults) const ABSL_LOCKS_EXCLUDED(service_lock);
  // Reads the job file and the files that it names.
  absl::StatusOr<spec::Reading> ReadFiles(const Submission& submission,
                                          const spec::Site& site) const;
  // Notes that results of earlier jobs are used, for retention. Nobody waits for it.
  void TouchResults(const spec::JobSpec& job) const;
  // Gives each job of the tree the snapshot of its code.
  absl::Status AssignSnapshots(const std::map<std::string, std::string>& sent, spec::JobSpec& job,
                               std::string& snapshot) const;

  SharedState& state_;
  const Secrets& secrets_;
  mutable spec::KeptSite site_;
  mutable RemotePaths paths_{state_.folders, state_.path_work};
};

}  // namespace tutti::service
