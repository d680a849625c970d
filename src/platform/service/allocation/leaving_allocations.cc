#include "platform/service/allocation/leaving_allocations.h"

#include <algorithm>
#include <utility>

namespace tutti::service {
namespace {

constexpr absl::Duration kBetweenStops = absl::Seconds(30);

std::vector<PlacedNode> PlacedOn(const std::vector<engine::Node>& occupied) {
  std::vector<PlacedNode> nodes;
  nodes.reserve(occupied.size());
  for (const engine::Node& node : occupied) {
    nodes.push_back({.name = node.name,
                     .memory_bytes = node.memory_bytes,
                     .cores = node.cores,
                     .gpus = node.gpus});
  }
  return nodes;
}

}  // namespace

void LeavingAllocations::Add(const LiveJob& job, const Placement& placement) {
  Leaving leaving{.compute = job.record.job.spec.compute, .since = state_.clock->SinceBoot()};
  if (leaving.compute == "local") leaving.nodes = placement.nodes;
  leaving_[placement.allocation] = std::move(leaving);
}

void LeavingAllocations::Observe(const std::string& compute, const engine::AllocationState& state,
                                 Effects& effects) {
  const absl::Duration now = state_.clock->SinceBoot();
  if (state.waits) {
    effects.stops.push_back({.at = {compute, state.id}});
    return;
  }
  const bool alive = std::find(state.launcher_alive.begin(), state.launcher_alive.end(), true) !=
                     state.launcher_alive.end();
  if (!alive && table_.IsStillNeeded(state.id)) {
    leaving_.erase(state.id);
    state_.problems.ForgetAllocations([&](const AllocationAt& at) {
      return at.allocation == state.id;  // that it could not be stopped
    });
    return;
  }
  if (!alive) {
    effects.releases.push_back({compute, state.id});
    return;
  }
  const auto [leaving, is_new] =
      leaving_.try_emplace(state.id, Leaving{.compute = compute, .since = now});
  if (is_new) leaving->second.nodes = PlacedOn(state.occupied);
  End(state, leaving->second, effects);
}

void LeavingAllocations::End(const engine::AllocationState& state, Leaving& leaving,
                             Effects& effects) {
  const absl::Duration now = state_.clock->SinceBoot();
  if (now - std::max(leaving.since, leaving.last_stop) < kBetweenStops) return;
  leaving.last_stop = now;
  if (now - leaving.since <= state_.options.stop_grace + state_.options.silence_limit) {
    effects.stops.push_back({.at = {leaving.compute, state.id}});
    return;
  }
  for (size_t node = 0; node < state.launcher_alive.size(); ++node) {
    if (!state.launcher_alive[node]) continue;
    effects.kills.push_back({{leaving.compute, state.id}, static_cast<int>(node)});
  }
}

}  // namespace tutti::service
