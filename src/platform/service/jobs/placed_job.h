// How the part of a job that is known from its Provisioning event on comes to be. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "platform/service/jobs/live_job.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

// A new allocation. Its logs are still to be opened (allocation/job_output.h).
std::unique_ptr<PlacedJob> MakePlacedJob(const SharedState& state, const std::string& job_id,
                                         Placement placement);

// The same with what its launchers have reported.
absl::StatusOr<std::unique_ptr<PlacedJob>> RebuildPlacedJob(const SharedState& state,
                                                            const std::string& job_id,
                                                            Placement placement);

// What is said of a job whose logs cannot be opened or closed now, and of one that cannot be
// started.
std::string OutputProblem(const SharedState& state, const std::string& job);
std::string StartProblem(const std::string& job);

}  // namespace tutti::service
