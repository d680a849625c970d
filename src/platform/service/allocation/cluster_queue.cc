#include "platform/service/allocation/cluster_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/service/jobs/next_attempt.h"
#include "platform/service/jobs/placed_job.h"

namespace tutti::service {
namespace {

// Ports that jobs which share a node do not share, below those that the system gives out.
constexpr int kFirstPort = 10'000;
constexpr int kPairs = 11'000;
// A compute whose nodes' disk is full is tried again after this long.
constexpr absl::Duration kBetweenTries = absl::Seconds(5);

Placement PlaceOnCluster(const store::Job& job, std::string allocation,
                         const std::vector<engine::Node>& nodes) {
  const int port = kFirstPort + 2 * static_cast<int>(job.sequence % kPairs);
  Placement placement = Place(job.spec, std::move(allocation), nodes, port);
  if (const auto start = spec::StartPortOf(job.spec.distribution, static_cast<int>(nodes.size()))) {
    placement.start_port = start->asked > 0 ? start->asked : port + 1;
  }
  return placement;
}

// Until it is known which nodes they are.
std::vector<engine::Node> StandIns(int count) {
  std::vector<engine::Node> nodes(count);
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i] = {.name = absl::StrCat("node-", i), .address = "0.0.0.0", .directory = "/"};
  }
  return nodes;
}

std::string PlacementProblem(const std::string& job) {
  return absl::StrCat("job ", job, " cannot be placed");
}

}  // namespace

void ClusterQueue::HandOver(Effects& effects) {
  const absl::Duration now = state_.clock->SinceBoot();
  for (auto& [compute, jobs] : table_.to_hand_over()) {
    if (jobs.empty() || !state_.engines.WhyOutOfReach(compute).empty()) continue;
    const auto full = state_.full_disks.find(compute);
    const bool is_full = full != state_.full_disks.end();
    if (is_full && now < full->second.next_try) {
      // New ones are the last.
      for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
        if (absl::StartsWith(job->second->waits_for, kCannotBeHanded)) break;
        job->second->waits_for = absl::StrCat(kCannotBeHanded, full->second.why);
      }
      continue;
    }
    const auto is_due = [&](const auto& job) { return now >= job.second->not_before; };
    auto job = std::find_if(jobs.begin(), jobs.end(), is_due);
    while (job != jobs.end()) {
      HandOver(compute, *job->second, effects);
      job = jobs.erase(job);
      job = is_full ? jobs.end() : std::find_if(job, jobs.end(), is_due);
    }
    if (is_full) full->second.next_try = now + kBetweenTries;
  }
}

void ClusterQueue::HandOver(const std::string& compute, LiveJob& live, Effects& effects) {
  const store::Job& job = live.record.job;
  const bool is_again = absl::StartsWith(live.waits_for, kCannotBeHanded);
  if (!is_again) live.waits_for = "is being handed to the cluster";
  live.being_handed = true;
  const Placement placement =
      PlaceOnCluster(job, AllocationOf(live), StandIns(job.spec.instance_count));
  engine::Allocation allocation = AllocationFor(state_.options, live, placement);
  for (std::string& node : state_.cluster_cordons.NodesOf(compute)) {
    if (std::find(live.avoid.begin(), live.avoid.end(), node) == live.avoid.end()) {
      allocation.avoid.push_back(std::move(node));
    }
  }
  allocation.prefer = data_.NodesFor(job.spec, allocation.avoid);
  allocation.being_left = data_.BeingLeft(compute, allocation.prefer);
  effects.starts.push_back({.compute = compute, .allocation = std::move(allocation)});
}

void ClusterQueue::Observe(LiveJob& job, const engine::AllocationState& state) {
  if (state.waits) {
    job.waits_for = state.reason;
    job.expected_start = state.expected_start;
    return;
  }
  if (state.nodes.empty()) {
    EndUnplaced(job, state);
    return;
  }
  const std::string id = job.record.job.id;
  const absl::Status placed = PlaceOn(job, state);
  if (placed.ok()) state_.problems.ForgetJob(id);  // also that it was not handed over
  state_.problems.Note(PlacementProblem(id), placed, {.job = id});
}

void ClusterQueue::EndUnplaced(LiveJob& job, const engine::AllocationState& state) {
  const std::string id = job.record.job.id;
  const std::string why = state.reason.empty() ? "the cluster has dropped it" : state.reason;
  const Step end{.state = store::JobState::kFailed,
                 .reason = why,
                 .cause = Cause::kFailure,
                 .lost_node = state.lost,
                 .ran_nothing = state.disk_full,
                 .disk_full = state.disk_full};
  if (MayBeginAgain(job, end)) {
    state_.problems.Note(PlacementProblem(id), table_.BeginAgain(job, end), {.job = id});
    return;
  }
  const absl::Status written = table_.Append(job, end);
  state_.problems.Note(PlacementProblem(id), written, {.job = id});
  if (written.ok()) table_.Remove(job);
}

absl::Status ClusterQueue::PlaceOn(LiveJob& job, const engine::AllocationState& state) {
  const store::Job& fixed = job.record.job;
  // No launcher of it has been heard, as none is before the event below is written.
  job.placed = MakePlacedJob(state_, fixed.id, PlaceOnCluster(fixed, state.id, state.nodes));
  std::vector<std::string> names;
  for (const engine::Node& node : state.nodes) names.push_back(node.name);
  const absl::Status written = table_.Append(
      job,
      {store::JobState::kProvisioning, absl::StrCat("starting on ", absl::StrJoin(names, ", "))});
  if (!written.ok()) {
    job.placed.reset();
    return written;
  }
  job.placed->started = true;
  table_.NotePlaced(job);
  return absl::OkStatus();
}

bool ClusterQueue::IsBeingPlaced(absl::string_view allocation) const {
  const LiveJob* const job = table_.FindByAllocation(allocation);
  if (job == nullptr || job->placed != nullptr) return false;
  const std::string& compute = job->record.job.spec.compute;
  if (compute == "local") return false;
  calls_.Refresh(compute);
  return true;
}

}  // namespace tutti::service
