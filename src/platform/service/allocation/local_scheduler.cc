#include "platform/service/allocation/local_scheduler.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/scheduler/waiting_jobs.h"
#include "platform/service/attempt/node_room.h"
#include "platform/service/jobs/next_attempt.h"
#include "platform/service/jobs/placed_job.h"

namespace tutti::service {
namespace {

constexpr int kMasterPort = 6105;
constexpr int kPortAttempts = 32;
constexpr int kAllCores = 1 << 20;
// Why so many wait is found out every so often, and not at every change.
constexpr size_t kLongQueue = 200;
// So many jobs have a reason of their own, and those behind one a kind: it takes no longer for
// more.
constexpr size_t kMostExplained = 1000;
constexpr absl::Duration kBetweenExplanations = absl::Seconds(1);

scheduler::RunningJob RunningOn(const std::vector<PlacedNode>& nodes, std::string id,
                                absl::Time end) {
  scheduler::RunningJob running{.id = std::move(id), .expected_end = end};
  for (const PlacedNode& node : nodes) {
    running.nodes.push_back(node.name);
    if (const auto share = NodeShareOf(node)) running.shares.push_back(*share);
  }
  return running;
}

}  // namespace

void LocalScheduler::Schedule(Effects& effects) {
  is_explained_ = false;
  if (table_.waiting().empty() || !state_.disk_is_full.empty() || !HasRoom()) return;
  const absl::Time now = state_.clock->Now();
  const std::vector<scheduler::ClusterNode> nodes = OpenNodes();
  for (const scheduler::Start& start :
       scheduler::StartsOf(table_.waiting(), Running(now), nodes, now, Cordoned(nodes))) {
    const absl::Status status = StartOn(*table_.Find(start.job_id), start, effects);
    state_.problems.Note(StartProblem(start.job_id), status, {.job = start.job_id});
  }
}

void LocalScheduler::Explain() {
  std::optional<Question> question;
  {
    StateLock lock(state_);
    question = WhatIsToBeExplained();
  }
  if (!question) return;
  scheduler::Waits waits(question->pending, question->Answer().waits);
  StateLock lock(state_);
  table_.NoteWaits(std::move(waits));
}

std::optional<LocalScheduler::Question> LocalScheduler::WhatIsToBeExplained() {
  const absl::Duration since_boot = state_.clock->SinceBoot();
  const size_t waiting = table_.waiting().size();
  if (is_explained_ || waiting == 0 || !state_.local_engine_observed) return std::nullopt;
  const bool is_early = since_boot - last_explanation_ < kBetweenExplanations;
  if (waiting >= kLongQueue && is_early) return std::nullopt;
  last_explanation_ = since_boot;
  is_explained_ = true;
  if (state_.disk_is_full.empty()) {
    return QuestionOf(table_.waiting().First(kMostExplained), state_.clock->Now());
  }
  table_.NoteWaits(scheduler::Waits(state_.disk_is_full));
  return std::nullopt;
}

template <class Visit>
void LocalScheduler::VisitHeld(const Visit& visit) const {
  for (const LiveJob* job : table_.placed()) {
    if (job->record.job.spec.compute != "local") continue;
    for (const PlacedNode& node : job->placed->placement.nodes) visit(node);
  }
  for (const auto& [id, nodes] : held_) {
    for (const PlacedNode& node : nodes) visit(node);
  }
  for (const auto& [allocation, leaving] : leaving_.all()) {
    for (const PlacedNode& node : leaving.nodes) visit(node);
  }
}

bool LocalScheduler::HasRoom() const {
  std::unordered_map<std::string_view, int> used;  // processors
  VisitHeld([&](const PlacedNode& node) {
    used[node.name] += node.cores.empty() ? kAllCores : static_cast<int>(node.cores.size());
  });
  for (const auto& [node, id] : health_.suspects()) used[node] += kAllCores;
  return std::any_of(state_.nodes.begin(), state_.nodes.end(),
                     [&](const engine::Node& node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
                       return used[node.name] < RoomOf(node).cores &&
                              !state_.cordons.contains(node.name);
                     });
}

void LocalScheduler::WakeForNewJob(const LiveJob& job) {
  is_explained_ = false;
  const bool is_ours = job.flow == nullptr && job.record.job.spec.compute == "local";
  if (!is_ours || HasRoom()) state_.Wake();
}

std::vector<scheduler::RunningJob> LocalScheduler::Running(absl::Time now) const {
  std::vector<scheduler::RunningJob> running;
  for (const LiveJob* job : table_.placed()) {
    const store::Job& fixed = job->record.job;
    if (fixed.spec.compute != "local") continue;
    const absl::Time end =
        now - RunTimeOf(state_, *job) + fixed.spec.timeout + state_.options.stop_grace;
    running.push_back(RunningOn(job->placed->placement.nodes, fixed.id, end));
  }
  for (const auto& [id, nodes] : held_) running.push_back(RunningOn(nodes, id, now));
  for (const auto& [node, id] : health_.suspects())
    running.push_back({.id = id, .nodes = {node}, .expected_end = now});
  for (const auto& [allocation, leaving] : leaving_.all()) {
    if (leaving.compute != "local") continue;
    running.push_back(
        RunningOn(leaving.nodes, JobOfAllocation(allocation), now + state_.options.stop_grace));
  }
  return running;
}

LocalScheduler::Question LocalScheduler::QuestionOf(std::vector<scheduler::PendingJob> pending,
                                                    absl::Time now) const {
  Question question{
      .pending = std::move(pending), .running = Running(now), .nodes = OpenNodes(), .now = now};
  question.cordoned = Cordoned(question.nodes);
  return question;
}

scheduler::Decision LocalScheduler::Question::Answer() const {
  return scheduler::Schedule(pending, running, nodes, now, cordoned);
}

int LocalScheduler::Cordoned(const std::vector<scheduler::ClusterNode>& nodes) const {
  return static_cast<int>(state_.nodes.size() - nodes.size());
}

std::vector<scheduler::ClusterNode> LocalScheduler::OpenNodes() const {
  std::vector<scheduler::ClusterNode> nodes;
  nodes.reserve(state_.nodes.size());
  for (const engine::Node& node : state_.nodes) {
    if (!state_.cordons.contains(node.name)) nodes.push_back({node.name, RoomOf(node)});
  }
  return nodes;
}

// A claim on a port is gone with the service that made it; the job that has it may not yet listen.
FreePort LocalScheduler::FindPort(const std::string& address, int preferred) const {
  std::set<int> taken;
  for (const LiveJob* job : table_.placed()) {
    const Placement& placement = job->placed->placement;
    if (placement.nodes.front().address != address) continue;
    taken.insert({placement.master_port, placement.start_port});
  }
  FreePort found = state_.options.find_port(address, preferred);
  for (int i = 0; i < kPortAttempts && taken.contains(found.port); ++i) {
    found = state_.options.find_port(address, preferred + i + 1);
  }
  return found;
}

Placement LocalScheduler::PlaceWithPorts(const spec::JobSpec& spec,
                                         const std::vector<engine::Node>& nodes) const {
  const std::string& first = nodes.front().address;
  const FreePort master = FindPort(first, kMasterPort);
  Placement placement = Place(spec, "", nodes, master.port);
  placement.claims = {master};
  if (const auto start = spec::StartPortOf(spec.distribution, static_cast<int>(nodes.size()))) {
    placement.claims.push_back(FindPort(start->on_all_addresses ? "0.0.0.0" : first,
                                        start->asked > 0 ? start->asked : start->usual));
    placement.start_port = placement.claims.back().port;
  }
  return placement;
}

absl::StatusOr<Placement> LocalScheduler::PlacementOn(const spec::JobSpec& spec,
                                                      const scheduler::Start& start) const {
  std::vector<engine::Node> nodes;
  for (const std::string& name : start.nodes) {
    const auto found = std::find_if(state_.nodes.begin(), state_.nodes.end(),
                                    [&](const engine::Node& node) { return node.name == name; });
    if (found == state_.nodes.end()) return absl::InternalError(absl::StrCat("no node ", name));
    nodes.push_back(*found);
  }
  Placement placement = PlaceWithPorts(spec, nodes);
  placement.boot_id = state_.options.boot_id;
  if (start.shares.empty()) return placement;
  std::vector<const PlacedNode*> others;
  VisitHeld([&](const PlacedNode& node) { others.push_back(&node); });
  for (size_t i = 0; i < nodes.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(TakeNodeShare(nodes[i], start.shares[i], others, placement.nodes[i]));
  }
  return placement;
}

std::string LocalScheduler::ReasonOfStart(const Placement& placement) {
  return absl::StrCat("starting on ", absl::StrJoin(placement.nodes, ", ",
                                                    [](std::string* out, const PlacedNode& node) {
                                                      absl::StrAppend(out, node.name);
                                                    }));
}

absl::Status LocalScheduler::StartOn(LiveJob& job, const scheduler::Start& start,
                                     Effects& effects) {
  TUTTI_ASSIGN_OR_RETURN(Placement placement, PlacementOn(job.record.job.spec, start));
  placement.allocation = AllocationOf(job);
  const std::string reason = ReasonOfStart(placement);
  job.placed = MakePlacedJob(state_, job.record.job.id, std::move(placement));
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
  const bool may_start =
      state_.local_engine_observed && !state_.stopping && state_.disk_is_full.empty();
  if (!is_ours || !may_start || !HasRoom()) return std::nullopt;
  const absl::Time now = state_.clock->Now();
  const scheduler::PendingJob last{.id = job.id,
                                   .priority = job.spec.priority,
                                   .sequence = std::numeric_limits<int64_t>::max(),
                                   .node_count = job.spec.instance_count,
                                   .time_limit = job.spec.timeout,
                                   .share = NodeShareOf(job.spec)};
  const std::vector<scheduler::ClusterNode> nodes = OpenNodes();
  const std::optional<scheduler::Start> start =
      scheduler::StartAmong(table_.waiting(), last, Running(now), nodes, now, Cordoned(nodes));
  if (!start) return std::nullopt;
  auto placement = PlacementOn(job.spec, *start);
  if (!placement.ok()) return std::nullopt;
  held_[job.id] = placement->nodes;
  return *std::move(placement);
}

}  // namespace tutti::service
