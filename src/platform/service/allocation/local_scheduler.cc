#include "platform/service/allocation/local_scheduler.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/service/jobs/next_attempt.h"
#include "platform/service/jobs/placed_job.h"

namespace tutti::service {
namespace {

constexpr int kMasterPort = 6105;
constexpr int kStartPort = 6104;
constexpr int kRayPort = 6379;  // Ray's own
// Why so many wait is found out every so often, and not at every change.
constexpr size_t kLongQueue = 200;
constexpr absl::Duration kBetweenExplanations = absl::Seconds(1);

// Where its ranks meet, on ports that are free now and stay claimed.
Placement PlaceWithPorts(const ServiceOptions& options, const spec::JobSpec& spec,
                         const std::vector<engine::Node>& nodes) {
  const std::string& first = nodes.front().address;
  const FreePort master = options.find_port(first, kMasterPort);
  Placement placement = Place(spec, "", nodes, master.port);
  placement.claims = {master};
  if (spec.distribution.kind == spec::DistributionKind::kMpi && nodes.size() > 1) {
    placement.claims.push_back(options.find_port(first, kStartPort));
    placement.start_port = placement.claims.back().port;
  }
  if (spec.distribution.kind == spec::DistributionKind::kRay) {
    // Ray listens on all of the machine's addresses, and nodes share them.
    const int asked = spec.distribution.ray.port;
    placement.claims.push_back(options.find_port("0.0.0.0", asked > 0 ? asked : kRayPort));
    placement.start_port = placement.claims.back().port;
  }
  return placement;
}

}  // namespace

void LocalScheduler::Schedule(Effects& effects) {
  is_explained_ = false;
  if (table_.waiting().empty() || !state_.disk_is_full.empty() || !IsANodeFree()) return;
  const absl::Time now = state_.clock->Now();
  const std::vector<std::string> nodes = NodeNames();
  for (const scheduler::Start& start :
       scheduler::StartsOf(table_.waiting(), Running(now), nodes, now, Cordoned(nodes))) {
    const absl::Status status = StartOn(*table_.Find(start.job_id), start.nodes, effects);
    state_.problems.Note(StartProblem(start.job_id), status, {.job = start.job_id});
  }
}

void LocalScheduler::Explain() {
  StateLock lock(state_);
  const absl::Time now = state_.clock->Now();
  const size_t waiting = table_.waiting().size();
  if (is_explained_ || waiting == 0 || !state_.local_engine_observed) return;
  if (waiting >= kLongQueue && base::IsWithin(kBetweenExplanations, last_explanation_, now)) return;
  last_explanation_ = now;
  is_explained_ = true;
  if (!state_.disk_is_full.empty()) return ExplainFullDisk();
  for (const scheduler::Wait& wait : Decide(table_.waiting().InOrder(), now).waits) {
    LiveJob& job = *table_.Find(wait.job_id);
    job.waits_for = wait.reason;
    job.expected_start = wait.expected_start;
  }
}

void LocalScheduler::ExplainFullDisk() {
  for (const scheduler::PendingJob& pending : table_.waiting().InOrder()) {
    LiveJob& job = *table_.Find(pending.id);
    job.waits_for = state_.disk_is_full;
    job.expected_start.reset();
  }
}

bool LocalScheduler::IsANodeFree() const {
  std::unordered_set<std::string_view> held;
  for (const LiveJob* job : table_.placed()) {
    if (job->record.job.spec.compute != "local") continue;
    for (const PlacedNode& node : job->placed->placement.nodes) held.insert(node.name);
  }
  for (const auto& [id, nodes] : held_) held.insert(nodes.begin(), nodes.end());
  for (const auto& [node, id] : health_.suspects()) held.insert(node);
  for (const auto& [allocation, leaving] : leaving_.all()) {
    if (leaving.compute == "local") held.insert(leaving.nodes.begin(), leaving.nodes.end());
  }
  const auto is_free = [&](const engine::Node& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
    return !held.contains(node.name) && !state_.cordons.contains(node.name);
  };
  return std::any_of(state_.nodes.begin(), state_.nodes.end(), is_free);
}

void LocalScheduler::WakeForNewJob(const LiveJob& job) {
  is_explained_ = false;
  const bool is_ours = job.flow == nullptr && job.record.job.spec.compute == "local";
  if (!is_ours || IsANodeFree()) state_.Wake();
}

std::vector<scheduler::RunningJob> LocalScheduler::Running(absl::Time now) const {
  std::vector<scheduler::RunningJob> running;
  for (const LiveJob* job : table_.placed()) {
    if (job->record.job.spec.compute != "local") continue;
    scheduler::RunningJob entry{.id = job->record.job.id};
    for (const PlacedNode& node : job->placed->placement.nodes) entry.nodes.push_back(node.name);
    entry.expected_end = job->record.started.value_or(now) + job->record.job.spec.timeout +
                         state_.options.stop_grace;
    running.push_back(std::move(entry));
  }
  for (const auto& [id, nodes] : held_)
    running.push_back({.id = id, .nodes = nodes, .expected_end = now});
  for (const auto& [node, id] : health_.suspects())
    running.push_back({.id = id, .nodes = {node}, .expected_end = now});
  for (const auto& [allocation, leaving] : leaving_.all()) {
    if (leaving.compute != "local") continue;
    running.push_back({.id = JobOfAllocation(allocation),
                       .nodes = leaving.nodes,
                       .expected_end = now + state_.options.stop_grace});
  }
  return running;
}

scheduler::Decision LocalScheduler::Decide(const std::vector<scheduler::PendingJob>& pending,
                                           absl::Time now) const {
  const std::vector<std::string> nodes = NodeNames();
  return scheduler::Schedule(pending, Running(now), nodes, now, Cordoned(nodes));
}

int LocalScheduler::Cordoned(const std::vector<std::string>& nodes) const {
  return static_cast<int>(state_.nodes.size() - nodes.size());
}

std::vector<std::string> LocalScheduler::NodeNames() const {
  std::vector<std::string> names;
  names.reserve(state_.nodes.size());
  for (const engine::Node& node : state_.nodes) {
    if (!state_.cordons.contains(node.name)) names.push_back(node.name);
  }
  return names;
}

absl::StatusOr<Placement> LocalScheduler::PlacementOn(const spec::JobSpec& spec,
                                                      const std::vector<std::string>& names) const {
  std::vector<engine::Node> nodes;
  for (const std::string& name : names) {
    const auto found = std::find_if(state_.nodes.begin(), state_.nodes.end(),
                                    [&](const engine::Node& node) { return node.name == name; });
    if (found == state_.nodes.end()) return absl::InternalError(absl::StrCat("no node ", name));
    nodes.push_back(*found);
  }
  Placement placement = PlaceWithPorts(state_.options, spec, nodes);
  placement.boot_id = state_.options.boot_id;
  return placement;
}

std::string LocalScheduler::ReasonOfStart(const Placement& placement) {
  return absl::StrCat("starting on ", absl::StrJoin(placement.nodes, ", ",
                                                    [](std::string* out, const PlacedNode& node) {
                                                      absl::StrAppend(out, node.name);
                                                    }));
}

absl::Status LocalScheduler::StartOn(LiveJob& job, const std::vector<std::string>& names,
                                     Effects& effects) {
  TUTTI_ASSIGN_OR_RETURN(Placement placement, PlacementOn(job.record.job.spec, names));
  placement.allocation = AllocationOf(job);
  const std::string reason = ReasonOfStart(placement);
  TUTTI_ASSIGN_OR_RETURN(job.placed,
                         RebuildPlacedJob(state_, job.record.job.id, std::move(placement)));
  absl::Status written = table_.Append(job, {store::JobState::kProvisioning, reason});
  if (!written.ok()) {
    job.placed.reset();
    return written;
  }
  job.placed->must_open = true;
  table_.NotePlaced(job);
  Effects more;
  progress_.Advance(job, more).IgnoreError();  // the next tick tries again, and says why
  effects.starts.insert(effects.starts.end(), more.starts.begin(), more.starts.end());
  effects.tasks.insert(effects.tasks.end(), more.tasks.begin(), more.tasks.end());
  effects.cordons.insert(effects.cordons.end(), more.cordons.begin(), more.cordons.end());
  return absl::OkStatus();
}

std::optional<Placement> LocalScheduler::PlaceAtOnce(const store::Job& job) {
  const bool is_ours = job.spec.kind == spec::JobKind::kCommand && job.spec.compute == "local";
  const bool is_next = table_.waiting().empty() && state_.local_engine_observed && !state_.stopping;
  if (!is_ours || !is_next) return std::nullopt;
  const absl::Time now = state_.clock->Now();
  const scheduler::Decision decision = Decide({{.id = job.id,
                                                .priority = job.spec.priority,
                                                .node_count = job.spec.instance_count,
                                                .time_limit = job.spec.timeout}},
                                              now);
  if (decision.starts.empty()) return std::nullopt;
  const std::vector<std::string>& names = decision.starts.front().nodes;
  auto placement = PlacementOn(job.spec, names);
  if (!placement.ok()) return std::nullopt;
  held_[job.id] = names;
  return *std::move(placement);
}

}  // namespace tutti::service
