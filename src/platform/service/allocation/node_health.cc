#include "platform/service/allocation/node_health.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "platform/service/allocation/cordons.h"
#include "platform/service/diagnosis/faulty_node.h"
#include "platform/service/health/node_checker.h"
#include "platform/service/jobs/next_attempt.h"

namespace tutti::service {
namespace {

// One node is looked at in so long, so that many of them cost no more than few.
constexpr absl::Duration kBetweenNodes = absl::Seconds(1);
constexpr absl::Duration kAfterJobs = absl::Minutes(1);
constexpr absl::Duration kWhileIll = absl::Seconds(10);
constexpr size_t kMostAtATime = 64;
// So many times as long as a look has taken that was long, no other follows a failure.
constexpr int kFailuresPerLook = 9;
constexpr absl::Duration kLongLook = absl::Seconds(1);
// How old what is known of the machine may be: for a look in passing, and for one with a reason.
constexpr absl::Duration kRecent = absl::Seconds(30), kFresh = absl::Seconds(1);

// As it is shown in tables.
std::string ForATable(std::string text) {
  constexpr size_t kLongest = 300;
  if (text.size() > kLongest) text = absl::StrCat(text.substr(0, kLongest), "…");
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); }, ' ');
  return text;
}

}  // namespace

void NodeHealth::Look(Effects& effects) {
  state_.cluster_cordons.Expire(state_.clock->SinceBoot());
  if (state_.options.node_checker == nullptr) return;
  const absl::Duration now = state_.clock->SinceBoot();
  if (!suspects_.empty()) LookAtSuspects(effects);
  if (now - last_sweep_ < kBetweenNodes) return;
  last_sweep_ = now;
  NoteSilences(effects);
  LookAtTheNextOne(effects);
  GlanceAtNodes(effects);
}

void NodeHealth::LookAtSuspects(Effects& effects) {
  for (const engine::Node& node : state_.nodes) {
    const Watched& watched = nodes_[node.name];
    if (suspects_.contains(node.name) && !watched.queued && !watched.runs) {
      Begin(node, kFresh, effects);
    }
  }
}

// In turn, some at a time, since this is under the lock.
void NodeHealth::LookAtTheNextOne(Effects& effects) {
  const absl::Duration now = state_.clock->SinceBoot();
  const size_t count = std::min(state_.nodes.size(), kMostAtATime);
  for (size_t i = 0; i < count; ++i) {
    const engine::Node& node = state_.nodes[next_++ % state_.nodes.size()];
    const Watched& watched = nodes_[node.name];
    if (watched.queued || watched.runs || DueAt(node, watched) > now) continue;
    Begin(node, kRecent, effects);
    return;
  }
}

// Notes checks that have not come back in time: their nodes hang.
void NodeHealth::NoteSilences(Effects& effects) {
  const absl::Duration patience = state_.options.node_checker->patience();
  for (const engine::Node& node : running_) {
    Watched& watched = nodes_[node.name];
    if (watched.is_silent || state_.clock->SinceBoot() - watched.began <= patience) continue;
    if (Change change = NoteSilence(node, watched)) effects.cordons.push_back(std::move(change));
  }
}

absl::Duration NodeHealth::DueAt(const engine::Node& node, const Watched& watched) const {
  if (IsCordonedByCheck(node.name)) return watched.last + kWhileIll;
  const absl::Duration interval = state_.options.node_checker->interval();
  return watched.last + (watched.soon ? std::min(kAfterJobs, interval) : interval);
}

void NodeHealth::Begin(const engine::Node& node, absl::Duration age, Effects& effects) {
  nodes_[node.name].queued = true;
  effects.checks.push_back({node.name, [this, node, age] { Check(node, age); }});
}

std::vector<health::NodeCheck> NodeHealth::Check(const engine::Node& node, absl::Duration age) {
  {
    StateLock lock(state_);
    nodes_[node.name].soon = false;
    // Nothing that was found earlier is believed about a node that is ill, maybe since this look
    // was asked for.
    if (IsCordonedByCheck(node.name)) age = std::min(age, kFresh);
  }
  return LookAt(
      node, [&] { return state_.options.node_checker->Check(node, age); }, &NodeHealth::Judge,
      [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_lock) {
        nodes_[node.name].last = state_.clock->SinceBoot();
        suspects_.erase(node.name);  // not before its cordon is there
        state_.Wake();
      });
}

std::vector<health::NodeCheck> NodeHealth::LookAt(
    const engine::Node& node, const std::function<std::vector<health::NodeCheck>()>& look,
    Judgement judge, const std::function<void()>& note_back) {
  {
    StateLock lock(state_);
    Watched& watched = nodes_[node.name];
    watched.queued = watched.is_silent = false;
    watched.runs = true;
    watched.began = state_.clock->SinceBoot();
    running_.push_back(node);
  }
  std::vector<health::NodeCheck> checks = look();
  if (state_.ending) return checks;  // it may have been abandoned
  Change change;
  {
    StateLock lock(state_);
    change = (this->*judge)(node.name, checks);
  }
  if (change) change();
  StateLock lock(state_);
  nodes_[node.name].runs = false;
  std::erase_if(running_, [&](const engine::Node& other) { return other.name == node.name; });
  note_back();
  return checks;
}

NodeHealth::Change NodeHealth::Judge(const std::string& node,
                                     const std::vector<health::NodeCheck>& checks) {
  Watched& watched = nodes_[node];
  std::set<std::string> ill;
  std::vector<std::string> reasons;
  for (const health::NodeCheck& check : checks) {
    const bool is_unknown = check.outcome == health::NodeCheck::Outcome::kUnknown;
    state_.problems.Note(
        absl::StrCat("the check of this machine's nodes, ", check.name, ", cannot be made"),
        is_unknown ? absl::UnavailableError(ForATable(check.detail)) : absl::OkStatus());
    if (!check.ill()) continue;
    ill.insert(check.name);
    if (watched.accepted.contains(check.name)) continue;
    reasons.push_back(absl::StrCat(check.name, ": ", check.detail));
  }
  std::erase_if(watched.accepted, [&](const std::string& name) { return !ill.contains(name); });
  watched.ill = std::move(ill);
  const std::string verdict = std::exchange(watched.verdict, "");
  if (!reasons.empty()) {
    return ToCordon(node, absl::StrJoin(reasons, "; "), store::CordonAuthor::kCheck);
  }
  if (!verdict.empty()) return JudgeByJobs(node, verdict);
  if (!IsCordonedByCheck(node)) return nullptr;
  return [this, node] { LiftCordon(state_, node, store::CordonAuthor::kCheck); };
}

// The last node that takes jobs is kept: whatever they say, it may be they.
NodeHealth::Change NodeHealth::JudgeByJobs(const std::string& node, const std::string& verdict) {
  const bool others =
      std::any_of(state_.nodes.begin(), state_.nodes.end(), [&](const engine::Node& other) {
        return other.name != node && !state_.cordons.contains(other.name);
      });
  state_.problems.Note(absl::StrCat("node ", node, " may be ill, and is the last that takes jobs"),
                       others ? absl::OkStatus() : absl::FailedPreconditionError(verdict));
  return others ? ToCordon(node, verdict, store::CordonAuthor::kJobs) : nullptr;
}

NodeHealth::Change NodeHealth::NoteSilence(const engine::Node& node, Watched& watched) {
  watched.is_silent = true;
  watched.ill = {"answer"};
  if (watched.accepted.contains("answer")) return nullptr;
  Change change =
      ToCordon(node.name,
               absl::StrCat("answer: its checks have not come back for ",
                            absl::FormatDuration(state_.options.node_checker->patience()),
                            " (does the disk of ", node.directory, " answer?)"),
               store::CordonAuthor::kCheck);
  suspects_.erase(node.name);
  return change;
}

NodeHealth::Change NodeHealth::ToCordon(const std::string& node, const std::string& reason,
                                        store::CordonAuthor author) {
  if (state_.cordons.contains(node)) return nullptr;
  const store::Cordon cordon{node, ForATable(reason), state_.clock->Now(), author};
  NoteCordon(state_, cordon);
  return [this, cordon] { WriteCordon(state_, cordon); };
}

bool NodeHealth::IsCordonedByCheck(const std::string& node) const {
  const auto cordon = state_.cordons.find(node);
  return cordon != state_.cordons.end() && cordon->second.author == store::CordonAuthor::kCheck;
}

void NodeHealth::NoteEnd(const LiveJob& job, const Step& step, Effects& effects) {
  const Placement& placement = job.placed->placement;
  failure_looks_.erase(placement.allocation);  // of one that was to be stopped meanwhile
  if (job.record.job.spec.compute != "local") {
    NoteIllNodesOfCluster(job);
    return;
  }
  const bool went_well = step.state == store::JobState::kCompleted;
  for (const PlacedNode& node : placement.nodes) {
    nodes_[node.name].soon = true;
    if (went_well) ledger_.NoteWell(node.name, WorkOf(job.record.job));
  }
  // What a reboot has ended is nobody's fault.
  const bool counts =
      step.state == store::JobState::kFailed && placement.boot_id == state_.options.boot_id;
  if (counts) NoteFaults(job, effects);
}

// A GPU that leaves the bus, or a disk that breaks, fails the processes that use it, which say so
// or do not. On a cluster the launcher looks; here the service knows more of its nodes.
bool NodeHealth::JudgeFailure(const LiveJob& job, Step& step, Effects& effects) {
  const Placement& placement = job.placed->placement;
  const bool may_be_its_node =
      step.state == store::JobState::kFailed && !step.lost_node && job.cause == Cause::kFailure &&
      job.record.job.spec.compute == "local" && placement.boot_id == state_.options.boot_id &&
      state_.options.node_checker != nullptr;
  if (!may_be_its_node) return true;
  const auto [at, is_new] = failure_looks_.try_emplace(placement.allocation);
  FailureLooks& looks = at->second;
  job.placed->is_looked_into = true;
  if (is_new) LookAfterFailure(job, looks, effects);
  const absl::Duration patience = state_.options.node_checker->patience();
  const bool is_late = state_.clock->SinceBoot() - looks.began > patience;
  if (!looks.pending.empty() && !is_late) return false;
  for (const std::string& node : looks.nodes) {
    if (!IsCordonedByCheck(node) || !MayHaveFailedAProcess(node)) continue;
    step.lost_node = true;
    step.ran_nothing |= FailedAtOnce(job);
    absl::StrAppend(&step.reason, "; node ", node, " is ill: ", state_.cordons.at(node).reason);
  }
  failure_looks_.erase(at);
  return true;
}

void NodeHealth::LookAfterFailure(const LiveJob& job, FailureLooks& looks, Effects& effects) {
  looks.began = state_.clock->SinceBoot();
  absl::Duration failed = -absl::InfiniteDuration();
  for (const RankExit& exit : job.placed->gang.End().exits) {
    if (exit.ok() || exit.stopped) continue;
    looks.nodes.insert(exit.node);
    failed = std::max(failed, std::min(exit.heard, looks.began));
  }
  for (const engine::Node& node : state_.nodes) {
    if (!looks.nodes.contains(node.name) || failed < nodes_[node.name].cleared_until) continue;
    looks.pending.insert(node.name);
    effects.checks.push_back(
        {node.name, [this, node, failed, allocation = job.placed->placement.allocation] {
           LookAfter(node, failed, allocation);
         }});
  }
}

// Where looks take long, jobs that fail one after the other have a tenth of the time go to them.
void NodeHealth::LookAfter(const engine::Node& node, absl::Duration failed,
                           const std::string& allocation) {
  const absl::Duration began = state_.clock->SinceBoot();
  const std::vector<health::NodeCheck> checks =
      Check(node, std::min(began - failed, kFresh));  // nothing older
  const bool is_ill = std::any_of(checks.begin(), checks.end(),
                                  [](const health::NodeCheck& check) { return check.ill(); });
  StateLock lock(state_);
  const absl::Duration now = state_.clock->SinceBoot();
  const absl::Duration took = now - began;
  if (!is_ill && took >= kLongLook) nodes_[node.name].cleared_until = now + took * kFailuresPerLook;
  const auto at = failure_looks_.find(allocation);
  if (at != failure_looks_.end()) at->second.pending.erase(node.name);
  state_.Wake();
}

// The service's own folder is nothing to a job.
bool NodeHealth::MayHaveFailedAProcess(const std::string& node) const {
  const auto watched = nodes_.find(node);
  return watched == nodes_.end() || watched->second.ill != std::set<std::string>{"home"};
}

// Its launchers have looked at them.
void NodeHealth::NoteIllNodesOfCluster(const LiveJob& job) {
  const std::string& compute = job.record.job.spec.compute;
  for (const NodeEnd& node : job.placed->gang.End().nodes) {
    if (node.ill.empty()) continue;
    AddClusterCordon(state_, compute, node.node, ForATable(node.ill));
  }
}

void NodeHealth::NoteFaults(const LiveJob& job, Effects& effects) {
  const std::string& id = job.record.job.id;
  for (const NodeFault& fault : NodeFaultsOf(job.placed->gang.End())) {
    const std::string verdict =
        ledger_.NoteFault(fault.node, {WorkOf(job.record.job), id, fault.what});
    if (state_.options.node_checker != nullptr) {
      suspects_[fault.node] = id;
      nodes_[fault.node].verdict = verdict;
    } else if (!verdict.empty()) {
      if (Change change = JudgeByJobs(fault.node, verdict)) {
        effects.cordons.push_back(std::move(change));
      }
    }
  }
  for (const std::string& node : ledger_.TakeCleared()) {
    effects.cordons.push_back(
        [this, node] { LiftCordon(state_, node, store::CordonAuthor::kJobs); });
  }
}

void NodeHealth::Accept(absl::string_view node) {
  const std::string name(node);
  Watched& watched = nodes_[name];
  watched.accepted.insert(watched.ill.begin(), watched.ill.end());
  watched.verdict.clear();
  ledger_.Forget(name);
  if (watched.ill.contains("gpu")) state_.options.node_checker->Accept();
}

absl::StatusOr<std::vector<health::NodeCheck>> NodeHealth::CheckNow(absl::string_view compute,
                                                                    absl::string_view name) {
  engine::Node node;
  {
    StateLock lock(state_);
    if (const absl::Status there = CheckIsOurs(state_, compute, name); !there.ok()) return there;
    if (state_.options.node_checker == nullptr) {
      return absl::FailedPreconditionError("this service does not look at its nodes");
    }
    node = *std::find_if(state_.nodes.begin(), state_.nodes.end(),
                         [&](const engine::Node& one) { return one.name == name; });
  }
  const absl::Duration patience = state_.options.node_checker->patience();
  const auto unanswered = [](absl::string_view why) {
    return std::vector<health::NodeCheck>{
        {"answer", health::NodeCheck::Outcome::kIll, std::string(why)}};
  };
  if (const absl::Status away = state_.folders.Check(node.directory); !away.ok()) {
    return unanswered(away.message());
  }
  const auto checks = std::make_shared<std::vector<health::NodeCheck>>();
  const bool answered =
      !state_.health_work.Hangs(node.name, patience) &&
      DoWithin(
          state_, state_.health_work, node.name, node.directory,
          [this, node, checks] { *checks = Check(node, kFresh); }, base::Deadline::After(patience));
  if (answered) return *checks;
  if (const absl::Status away = state_.folders.Check(node.directory); !away.ok()) {
    return unanswered(away.message());
  }
  return unanswered(
      absl::StrCat("its checks have not come back for ", absl::FormatDuration(patience)));
}

}  // namespace tutti::service
