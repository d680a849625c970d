// How the part of a job that is known from its Provisioning event on comes to be. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "platform/service/jobs/live_job.h"
#include "platform/service/jobs/shared_state.h"

namespace tutti::service {

// A job that begins fails where its logs cannot be opened; one that runs already goes on, and they
// are tried again.
enum class OpenLogs { kNow, kWhenPossible };

// A new allocation, with its logs.
absl::StatusOr<std::unique_ptr<PlacedJob>> MakePlacedJob(const SharedState& state,
                                                         const std::string& job_id,
                                                         Placement placement, OpenLogs open);

// What is known of an allocation: what its launchers have reported, and its logs.
absl::StatusOr<std::unique_ptr<PlacedJob>> RebuildPlacedJob(const SharedState& state,
                                                            const std::string& job_id,
                                                            Placement placement,
                                                            OpenLogs open = OpenLogs::kNow);

// What is said of a job whose logs cannot be opened now, and of one that cannot be started.
std::string OutputProblem(const SharedState& state, const std::string& job);
std::string StartProblem(const std::string& job);

}  // namespace tutti::service
