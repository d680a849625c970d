#include "platform/service/allocation/effects.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "platform/service/attempt/launcher_token.h"
#include "platform/service/results/result_stamp.h"
#include "spec/types/asked_of_slurm.h"

namespace tutti::service {

using store::JobState;

engine::Allocation AllocationFor(const ServiceOptions& options, const LiveJob& job,
                                 const Placement& placement) {
  const store::Job& fixed = job.record.job;
  engine::Allocation allocation{
      .id = placement.allocation,
      .plan = SharedPlanOf(fixed, placement, options.launcher_file, options.stop_grace),
      .nodes = NodePartsOf(placement),
      .priority = fixed.spec.priority,
      .slurm = spec::AskedOfSlurm(fixed.spec),
      .avoid = job.avoid};
  allocation.plan.attempt = job.attempt();
  allocation.plan.tracks = options.tracking != nullptr;
  allocation.plan.measures_usage = options.measures_usage;
  allocation.plan.launcher_token = LauncherToken(options.launcher_key, placement.allocation);
  for (size_t i = 0; i < allocation.nodes.size(); ++i) {
    if (!job.former || i >= job.former->nodes.size()) continue;
    allocation.nodes[i].former_directory =
        (std::filesystem::path(job.former->nodes[i].directory) / job.former->allocation).native();
  }
  return allocation;
}

bool IsToBeStarted(const LiveJob& job) {
  return job.record.last.state == JobState::kProvisioning ||
         std::any_of(job.placed->nodes.begin(), job.placed->nodes.end(),
                     [](const LiveNode& node) { return node.drains > 0; });
}

bool MayStoreLong(const LiveJob& job) {
  const auto& outputs = job.record.job.spec.outputs;
  return job.cause == Cause::kServed &&
         std::any_of(outputs.begin(), outputs.end(),
                     [](const auto& named) { return named.second.place.has_value(); });
}

void AddEffects(const ServiceOptions& options, const LiveJob& job, Effects& effects) {
  const PlacedJob& placed = *job.placed;
  const Placement& placement = placed.placement;
  if (!placed.started && IsToBeStarted(job)) {
    effects.starts.push_back({.compute = job.record.job.spec.compute,
                              .allocation = AllocationFor(options, job, placement)});
  }
  if (MustStop(job.cause) && !placed.stopped) {
    effects.stops.push_back({.at = {job.record.job.spec.compute, placement.allocation},
                             .patiently = MayStoreLong(job)});
  }
}

void StampForReuse(const SharedState& state, const std::string& id) {
  const absl::Status status = StampResults(state.files.FolderOf(id));
  if (!status.ok()) spdlog::warn("job {} will not be reused: {}", id, status.ToString());
}

}  // namespace tutti::service
