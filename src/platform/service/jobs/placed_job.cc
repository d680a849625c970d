#include "platform/service/jobs/placed_job.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::service {

std::unique_ptr<PlacedJob> MakePlacedJob(const SharedState& state, const std::string& job_id,
                                         Placement placement) {
  const absl::Duration now = state.clock->SinceBoot();
  auto job = std::make_unique<PlacedJob>(std::move(placement));
  job->nodes.assign(job->placement.nodes.size(), LiveNode{.last_word = now});
  job->started_at = now;
  std::vector<JobUsage::NodePlace> places;
  for (const PlacedNode& node : job->placement.nodes) {
    places.push_back({node.name, node.first_rank, node.process_count});
  }
  job->usage = std::make_shared<JobUsage>(state.files.FolderOf(job_id) / kUsageFolder,
                                          std::move(places), state.usage_memory);
  job->logs = JobLogs::OpenLater(state.files.FolderOf(job_id) / "logs", state.clock,
                                 state.options.log_limit, AttemptOf(job->placement.allocation));
  return job;
}

absl::StatusOr<std::unique_ptr<PlacedJob>> RebuildPlacedJob(const SharedState& state,
                                                            const std::string& job_id,
                                                            Placement placement) {
  auto job = MakePlacedJob(state, job_id, std::move(placement));
  for (int node = 0; node < job->gang.size(); ++node) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> lines,
                           state.store->LauncherEvents(job->placement.allocation, node));
    for (const std::string& line : lines) {
      job->gang.Apply(node, line, state.clock->SinceBoot());
    }
  }
  return job;
}

std::string OutputProblem(const SharedState& state, const std::string& job) {
  return absl::StrCat("the output of job ", job, " cannot be kept: repair ",
                      (state.files.FolderOf(job) / "logs").native(), " or cancel the job");
}

std::string StartProblem(const std::string& job) {
  return absl::StrCat("job ", job, " cannot be started");
}

}  // namespace tutti::service
