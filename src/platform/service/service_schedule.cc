// Which of the jobs that wait begins on which nodes of this machine's.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/service/service_core.h"

namespace tutti::service {
namespace {

constexpr int kMasterPort = 6105;
constexpr int kStartPort = 6104;
constexpr int kRayPort = 6379;  // Ray's own
// Who waits behind so many is told why every so often, and not at every change.
constexpr size_t kLongQueue = 200;
constexpr absl::Duration kBetweenExplanations = absl::Seconds(1);

}  // namespace

std::vector<scheduler::PendingJob> ServiceCore::Pending() const {
  std::vector<scheduler::PendingJob> pending;
  for (const auto& [id, job] : live_) {
    const spec::JobSpec& spec = job->record.job.spec;
    if (job->placed != nullptr || job->flow != nullptr || spec.compute != "local") continue;
    pending.push_back({.id = id,
                       .priority = spec.priority,
                       .sequence = job->record.job.sequence,
                       .node_count = spec.instance_count,
                       .time_limit = spec.timeout});
  }
  return pending;
}

std::vector<scheduler::RunningJob> ServiceCore::Running(absl::Time now) const {
  std::vector<scheduler::RunningJob> running;
  for (const LiveJob* job : placed_) {
    if (job->record.job.spec.compute != "local") continue;
    scheduler::RunningJob entry{.id = job->record.job.id};
    for (const PlacedNode& node : job->placed->placement.nodes) entry.nodes.push_back(node.name);
    entry.expected_end =
        job->record.started.value_or(now) + job->record.job.spec.timeout + options_.stop_grace;
    running.push_back(std::move(entry));
  }
  for (const auto& [id, nodes] : held_)
    running.push_back({.id = id, .nodes = nodes, .expected_end = now});
  for (const auto& [allocation, leaving] : leaving_) {
    if (leaving.compute != "local") continue;
    running.push_back({.id = JobOfAllocation(allocation),
                       .nodes = leaving.nodes,
                       .expected_end = now + options_.stop_grace});
  }
  return running;
}

bool ServiceCore::SchedulingPays(absl::Time now) const {
  if (live_.size() - placed_.size() < kLongQueue || now >= next_explanation_) return true;
  size_t held = 0;
  for (const LiveJob* job : placed_) {
    if (job->record.job.spec.compute == "local") held += job->placed->placement.nodes.size();
  }
  for (const auto& [allocation, leaving] : leaving_) held += leaving.nodes.size();
  return held < nodes_.size();
}

void ServiceCore::WakeForNewJob() {
  if (SchedulingPays(clock_->Now())) Wake();
}

void ServiceCore::ScheduleQueued(Effects& effects) {
  const absl::Time now = clock_->Now();
  if (!SchedulingPays(now)) return;
  next_explanation_ = now + kBetweenExplanations;
  const std::vector<scheduler::PendingJob> pending = Pending();
  if (pending.empty()) return;
  const scheduler::Decision decision = scheduler::Schedule(pending, Running(now), NodeNames(), now);
  for (const scheduler::Start& start : decision.starts) {
    const absl::Status status = StartOn(*live_.at(start.job_id), start.nodes, effects);
    Complain(StartTrouble(start.job_id), status, {.job = start.job_id});
  }
  for (const scheduler::Wait& wait : decision.waits) {
    LiveJob& job = *live_.at(wait.job_id);
    job.waits_for = wait.reason;
    job.expected_start = wait.expected_start;
  }
}

std::vector<std::string> ServiceCore::NodeNames() const {
  std::vector<std::string> names;
  names.reserve(nodes_.size());
  for (const engine::Node& node : nodes_) names.push_back(node.name);
  return names;
}

absl::StatusOr<Placement> ServiceCore::PlacementOn(const spec::JobSpec& spec,
                                                   const std::vector<std::string>& names) const {
  std::vector<engine::Node> nodes;
  for (const std::string& name : names) {
    const auto found = std::find_if(nodes_.begin(), nodes_.end(),
                                    [&](const engine::Node& node) { return node.name == name; });
    if (found == nodes_.end()) return absl::InternalError(absl::StrCat("no node ", name));
    nodes.push_back(*found);
  }
  const std::string& first = nodes.front().address;
  const FreePort master = options_.find_port(first, kMasterPort);
  Placement placement = Place(spec, "", nodes, master.port);
  placement.claims = {master};
  if (spec.distribution.kind == spec::DistributionKind::kMpi && nodes.size() > 1) {
    placement.claims.push_back(options_.find_port(first, kStartPort));
    placement.start_port = placement.claims.back().port;
  }
  if (spec.distribution.kind == spec::DistributionKind::kRay) {
    // Ray listens on all of the machine's addresses, and nodes share them.
    const int asked = spec.distribution.ray.port;
    placement.claims.push_back(options_.find_port("0.0.0.0", asked > 0 ? asked : kRayPort));
    placement.start_port = placement.claims.back().port;
  }
  placement.boot_id = options_.boot_id;
  return placement;
}

std::string ServiceCore::ReasonOfStart(const Placement& placement) {
  return absl::StrCat("starting on ", absl::StrJoin(placement.nodes, ", ",
                                                    [](std::string* out, const PlacedNode& node) {
                                                      absl::StrAppend(out, node.name);
                                                    }));
}

absl::Status ServiceCore::StartOn(LiveJob& job, const std::vector<std::string>& names,
                                  Effects& effects) {
  TUTTI_ASSIGN_OR_RETURN(Placement placement, PlacementOn(job.record.job.spec, names));
  placement.allocation = AllocationOf(job);
  const std::string reason = ReasonOfStart(placement);
  TUTTI_ASSIGN_OR_RETURN(job.placed, RebuildGang(job.record.job.id, std::move(placement)));
  absl::Status written = Append(job, {JobState::kProvisioning, reason});
  if (!written.ok()) {
    job.placed.reset();
    return written;
  }
  placed_.insert(&job);
  Effects more;
  Advance(job, more).IgnoreError();  // the next tick tries again, and says why
  effects.starts.insert(effects.starts.end(), more.starts.begin(), more.starts.end());
  return absl::OkStatus();
}

}  // namespace tutti::service
