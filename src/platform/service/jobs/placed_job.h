// Makes a PlacedJob, the part of a LiveJob that exists once the job has nodes: anew, or from the
// store after a restart. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "platform/service/jobs/live_job.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

// Makes that of a new allocation. Its logs are still to be opened (allocation/job_output.h).
std::unique_ptr<PlacedJob> MakePlacedJob(const SharedState& state, const std::string& job_id,
                                         Placement placement);

// Makes that of an allocation of an earlier service, with what its launchers have reported by then.
absl::StatusOr<std::unique_ptr<PlacedJob>> RebuildPlacedJob(const SharedState& state,
                                                            const std::string& job_id,
                                                            Placement placement);

// Returns the subject of a problem (Problems::Note): a job's logs cannot be opened or closed now,
// or a job cannot be started.
std::string OutputProblem(const SharedState& state, const std::string& job);
std::string StartProblem(const std::string& job);

}  // namespace tutti::service
