#include "platform/launch/launcher.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/launch/delivery/beat.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/environment/node_facts.h"
#include "platform/launch/environment/part_binding.h"
#include "platform/launch/environment/slurm_placement.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/interruptible.h"
#include "platform/launch/node/claim.h"
#include "platform/launch/node/exit_reason.h"
#include "platform/launch/node/hang_watch.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/rank_failure.h"
#include "platform/launch/node/signals.h"
#include "platform/launch/node_processes.h"
#include "platform/launch/outputs/earlier_files.h"
#include "platform/launch/outputs/resumed_files.h"
#include "platform/launch/process/process_limit.h"
#include "platform/launch/process/process_tree.h"
#include "platform/launch/staging/secret_folder.h"
#include "platform/launch/staging/staged_bytes.h"
#include "spec/json/gang_plan.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// More than hooks take by themselves.
constexpr absl::Duration kLongestStoring = absl::Hours(48);
// For the service's answer to what this launcher has said last.
constexpr absl::Duration kForAnAnswer = absl::Minutes(1);

// One launcher's life, told in Run.
class Launcher {
 public:
  // `plan` and the parts outlive the object.
  Launcher(const spec::LaunchPlan& plan, const LauncherOptions& options, NodeFacts facts,
           const LauncherParts& parts)
      : plan_(plan),
        options_(options),
        facts_(std::move(facts)),
        parts_(parts),
        interruptible_(plan_, parts.events, parts.delivery, parts.signals, parts.news) {}

  absl::Status Run() {
    nlohmann::json preparing = nlohmann::json::object();
    const absl::Duration beat = BeatOf(plan_);
    if (beat > absl::ZeroDuration()) preparing["beat"] = absl::ToDoubleSeconds(beat);
    parts_.events->Append("preparing", std::move(preparing));
    if (!BeginsAtOnce()) parts_.delivery->Begin();
    return Finish(PrepareAndRun());
  }

  // Clears up after a launcher that died, as the allocation's second one.
  absl::Status ClearUp() {
    const absl::Status ended = EndProcessesOf(plan_.allocation_id, plan_.node().name,
                                              base::Deadline::After(absl::Seconds(30)));
    RemoveProcessLimits(plan_);
    MaskWhatIsLeft();
    hooks_.AfterEnd(plan_);
    if (parts_.events->finished()) return Deliver();
    if (const auto finalizing = EndBeforeStoring()) return StoreAfterOther(*finalizing);
    const std::string recorded = ReadExitReason(NodeFolders(plan_.directory).died());
    const std::string reason =
        recorded.empty() ? absl::StrCat("the launcher of node ", plan_.node().name, " died")
                         : recorded;
    // What results there are belong to the user all the same.
    const Results results = ResultsHere();
    nlohmann::json lost = {{"reason", reason}, {"explained", !recorded.empty()}};
    DescribeLeftOut(results, plan_.nodes.size() > 1, lost);
    parts_.events->Append("lost", std::move(lost));
    const absl::Status uploaded = SendResults(results);
    if (!uploaded.ok()) spdlog::warn("{}", uploaded.ToString());
    NodeContext node = ContextToStore();
    const absl::Status stored = Store(node, Storing::kFinishedOnly);
    if (!stored.ok()) spdlog::warn("{}", stored.ToString());
    return Finish(ended.ok() ? absl::InternalError(reason) : ended);
  }

 private:
  // Its processes start within a moment, and NodeProcesses lets the delivery begin after them.
  bool BeginsAtOnce() const {
    return !MustSyncClaim() && !hooks_.PreparesSlowly(plan_) && !hooks_.StartsSlowly(plan_) &&
           plan_.nodes.size() == 1;
  }

  bool MustSyncClaim() const { return plan_.boot_id.empty(); }

  absl::Status PrepareAndRun() {
    for (const std::string& name : OverriddenNames(plan_)) {
      spdlog::warn("variable {} is set by tutti, the job's value is not used", name);
    }
    NodeContext node{plan_, parts_.delivery, parts_.signals, parts_.news, facts_};
    node.events = parts_.events;
    node.spool = parts_.spool;
    const StagedBytes staged(plan_.shared_folder, static_cast<int>(plan_.nodes.size()));
    TUTTI_RETURN_IF_ERROR(Blame(Prepare(node), staged));
    ReportPrepared(node);
    TUTTI_RETURN_IF_ERROR(AwaitGo());
    TUTTI_RETURN_IF_ERROR(Blame(BeforeStart(node), staged));
    NodeProcesses processes(plan_, options_, parts_, std::move(node.command), std::move(node.facts),
                            std::move(node.mpi));
    const absl::Status status = processes.Run();
    if (processes.failed()) TUTTI_RETURN_IF_ERROR(MarkFailed());
    hooks_.AfterEnd(plan_);
    if (absl::IsAborted(status)) return status;
    nlohmann::json left = nlohmann::json::object();
    Results results = ResultsHere();
    hooks_.Describe(node, processes.failed(), results, left);
    if (hooks_.HasToStore(plan_)) {
      left["end"] = FieldsOfEnd(status);
      left["failed"] = processes.failed();
    }
    parts_.events->Append("finalizing", std::move(left));
    absl::Status end = status;
    const absl::Status uploaded = SendResults(results);
    if (end.ok()) end = hooks_.AfterResults(node);
    if (status.ok() && !uploaded.ok()) end = uploaded;
    const absl::Status stored = Store(node, HowToStore(end.ok() && !processes.failed()));
    return end.ok() ? stored : end;
  }

  // Says of what cannot be put in place whether the disk that all nodes share is why, and who
  // filled it.
  absl::Status Blame(const absl::Status& status, const StagedBytes& staged) const {
    const absl::Status blamed = BlameSharedDisk(status, plan_.shared_folder);
    const uint64_t own = blamed.ok() ? 0 : staged.FilledTheDisk(blamed.message());
    return own > 0 ? FilledByItsJob(blamed, own) : blamed;
  }

  bool IsToldToEnd() const {
    std::error_code error;
    return fs::exists(NodeFolders(plan_.directory).stop(), error);
  }

  // Until all is there of a job that has ended well, and of one that is told to end because its
  // chief has: how its servers end does not count. Of a job that was canceled, which may have ended
  // with 0 for that, for a moment. Until the service has said which of these it is, as long.
  Storing HowToStore(bool is_well) {
    if (!hooks_.HasToStore(plan_)) return Storing::kOnce;
    if (!IsToldToEnd()) return is_well ? Storing::kUntilThere : Storing::kOnce;
    parts_.events->Append("told", nlohmann::json::object());
    const absl::Status answered = parts_.delivery->AwaitEvents(base::Deadline::After(kForAnAnswer));
    if (!answered.ok()) spdlog::warn("{}", answered.ToString());
    return !answered.ok() || parts_.delivery->served() ? Storing::kUntilThere : Storing::kOnce;
  }

  // Brings outputs to where they are to be outside of the service. What has not come in the moment
  // that a job has which has failed or is told to end is noted; of another it is an error.
  absl::Status Store(NodeContext& node, Storing how) {
    if (!hooks_.HasToStore(plan_)) return absl::OkStatus();
    const bool until_there = how == Storing::kUntilThere;
    const absl::Status stored = interruptible_.RunLast(
        [&](const std::atomic<bool>& cancelled) { return hooks_.Store(node, how, cancelled); },
        [&] { hooks_.Abandon(node); },
        base::Deadline::After(until_there ? kLongestStoring : options_.storing_after_failure),
        options_.storing_after_failure, IsToldToEnd());
    if (stored.ok() || absl::IsAborted(stored)) return stored;
    if (until_there && !(absl::IsCancelled(stored) && IsToldToEnd())) return stored;
    parts_.events->Append("storing", {{"note", stored.message()}});
    return absl::OkStatus();
  }

  // Returns the context of a launcher that stores outputs after one that died.
  NodeContext ContextToStore() {
    NodeContext node{plan_, parts_.delivery, parts_.signals, parts_.news, facts_};
    node.events = parts_.events;
    node.spool = parts_.spool;
    parts_.delivery->Begin();
    return node;
  }

  // Returns the event "finalizing" of a launcher that died while it stored outputs: its processes
  // had ended, so that nothing of the job is lost.
  std::optional<nlohmann::json> EndBeforeStoring() const {
    if (!hooks_.HasToStore(plan_)) return std::nullopt;
    std::optional<nlohmann::json> found;
    const std::string lines = parts_.events->From(1);
    for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
      nlohmann::json event = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
      const bool is_end = event.is_object() && event.value("kind", "") == "finalizing" &&
                          event.contains("end") && event["end"].is_object();
      if (is_end) found = std::move(event);
    }
    return found;
  }

  // Goes on where that one was.
  absl::Status StoreAfterOther(const nlohmann::json& finalizing) {
    NodeContext node = ContextToStore();
    const nlohmann::json& end = finalizing["end"];
    const bool is_well = end.value("ok", false);
    absl::Status done = SendResults(ResultsHere());
    const absl::Status stored =
        Store(node, HowToStore(done.ok() && is_well && !finalizing.value("failed", false)));
    if (done.ok()) done = stored;
    return is_well ? Finish(done) : FinishWith(end);
  }

  // Before anything is sent: the metrics files lie as their processes have written them. By the
  // values that these were given: the service may have others now.
  void MaskWhatIsLeft() {
    if (!plan_.has_secrets() && !plan_.tracks) return;
    const auto given = SecretFolder::Given(plan_);
    if (given.ok()) return MaskOutput(*given, *parts_.spool, *parts_.events);
    if (!plan_.has_secrets()) return;  // its run's token opens little, and not for long
    spdlog::warn("it is not known here which secrets the processes had, so metrics are hidden: {}",
                 given.status().ToString());
    MaskEverything(*parts_.spool);
  }

  Results ResultsHere() const {
    Results results = ResultsOf(plan_);
    LeaveOutEarlierFiles(plan_, results);
    LeaveOutResumedFiles(plan_, results);
    return results;
  }

  absl::Status SendResults(const Results& results) {
    absl::Status sent =
        parts_.delivery->SendResults(results.files, Patience::For(options_.delivery_limit));
    sent.Update(results.failure);
    return sent;
  }

  void ReportPrepared(NodeContext& node) {
    std::erase(node.notes, "");
    nlohmann::json prepared = nlohmann::json::object();
    if (!node.notes.empty()) prepared["note"] = absl::StrJoin(node.notes, "; ");
    parts_.events->Append("prepared", std::move(prepared));
  }

  // For who starts launchers on a cluster, whose accounting is to say so.
  absl::Status MarkFailed() const {
    return base::Open(NodeFolders(plan_.directory).failed(), O_WRONLY | O_CREAT).status();
  }

  // Where the claim must be durable it is made so beside the hooks.
  absl::Status Prepare(NodeContext& node) {
    const bool must_sync = MustSyncClaim();
    if (!must_sync && !hooks_.PreparesSlowly(plan_)) {
      return hooks_.Prepare(node, /*cancelled=*/false);
    }
    absl::Status durable;
    std::thread sync;
    if (must_sync) {
      sync = std::thread([&] { durable = MakeClaimDurable(NodeFolders(plan_.directory)); });
    }
    const absl::Status prepared = interruptible_.Run(
        [&](const std::atomic<bool>& cancelled) { return hooks_.Prepare(node, cancelled); },
        [&] { hooks_.Abandon(node); }, base::Deadline::After(options_.prepare_limit));
    if (sync.joinable()) sync.join();
    return durable.ok() ? prepared : durable;
  }

  // A node that is the whole gang waits for nobody: it is prepared, so all are.
  absl::Status AwaitGo() {
    const bool is_alone = plan_.nodes.size() == 1;
    return interruptible_.Await([&] { return is_alone || parts_.delivery->go(); },
                                base::Deadline::After(options_.go_limit));
  }

  absl::Status BeforeStart(NodeContext& node) {
    if (!hooks_.StartsSlowly(plan_)) return hooks_.BeforeStart(node, /*cancelled=*/false);
    return interruptible_.Run(
        [&](const std::atomic<bool>& cancelled) { return hooks_.BeforeStart(node, cancelled); },
        [] {}, base::Deadline::After(options_.delivery_limit));
  }

  // Reports the end and stays until everything has been acknowledged.
  absl::Status Finish(const absl::Status& status) {
    if (!status.ok()) {
      spdlog::warn("{}", status.ToString(absl::StatusToStringMode::kWithNoExtraData));
      MarkFailed().IgnoreError();
    }
    return FinishWith(FieldsOfEnd(status));
  }

  static nlohmann::json FieldsOfEnd(const absl::Status& status) {
    nlohmann::json end = EndOf(status);
    if (absl::IsCancelled(status)) end["told"] = true;
    return end;
  }

  absl::Status FinishWith(nlohmann::json end) {
    const Patience patience = Patience::For(options_.delivery_limit);
    TUTTI_RETURN_IF_ERROR(OkIfGone(parts_.delivery->AwaitOutput(patience)));
    parts_.events->Append("finished", std::move(end));
    return Deliver();
  }

  absl::Status Deliver() {
    const Patience patience = Patience::For(options_.delivery_limit);
    TUTTI_RETURN_IF_ERROR(OkIfGone(parts_.delivery->AwaitEvents(patience)));
    if (!plan_.service_file.empty()) parts_.spool->SaveAcknowledged(parts_.events->size());
    hooks_.CleanUp(plan_);
    return base::Open(NodeFolders(plan_.directory).done(), O_WRONLY | O_CREAT).status();
  }

  static absl::Status OkIfGone(const absl::Status& status) {
    return absl::IsAborted(status) ? absl::OkStatus() : status;
  }

  const spec::LaunchPlan& plan_;
  const LauncherOptions options_;
  const NodeFacts facts_;
  const LauncherParts parts_;
  const HookList hooks_ = NodeHooks();
  Interruptible interruptible_;
};

// An engine that ends the allocation leaves the file and signals who has the lock. Whoever blocks
// the signal, takes the lock and then looks here misses neither.
void HeedEarlyStop(const NodeFolders& folders) {
  std::error_code error;
  if (fs::exists(folders.stop(), error)) ::kill(::getpid(), SIGTERM);  // for Signals::Take
}

absl::Status Run(const fs::path& plan_file, const LauncherOptions& options, StandbyState ahead) {
  TUTTI_RETURN_IF_ERROR(BecomeSubreaper());
  TUTTI_ASSIGN_OR_RETURN(spec::LaunchPlan plan, spec::ReadLaunchPlan(plan_file));
  if (const char* gang = std::getenv("TUTTI_GANG"))
    TUTTI_RETURN_IF_ERROR(ApplySlurmPlacement(gang, plan));
  const NodeFolders folders(plan.directory);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folders.spool()));
  TUTTI_ASSIGN_OR_RETURN(const Claim claim,
                         ClaimAllocation(folders, plan.boot_id, std::move(ahead.lock)));
  HeedEarlyStop(folders);
  TUTTI_ASSIGN_OR_RETURN(auto events, EventLog::Open(folders.events()));
  TUTTI_ASSIGN_OR_RETURN(
      auto spool, Spool::Open(folders.spool(), plan.node().first_rank, plan.node().process_count));
  NodeFacts facts = ahead.facts ? *std::move(ahead.facts) : FactsOfThisNode();
  // One that only delivers what another left runs nothing.
  if (claim.first) TUTTI_RETURN_IF_ERROR(KeepToPart(plan, facts));
  TUTTI_ASSIGN_OR_RETURN(Wakeup news, Wakeup::Make());
  TUTTI_ASSIGN_OR_RETURN(const auto delivery,
                         Delivery::Make(plan, events.get(), spool.get(), &news));
  Launcher launcher(plan, options, std::move(facts),
                    {events.get(), spool.get(), delivery.get(), &*ahead.signals, &news});
  return claim.first ? launcher.Run() : launcher.ClearUp();
}

// Whoever watches is a thread that is to have the signals blocked too.
absl::Status RunWatched(const fs::path& plan_file, const fs::path& note,
                        const LauncherOptions& options, StandbyState ahead) {
  if (!ahead.signals) {
    TUTTI_ASSIGN_OR_RETURN(ahead.signals, Signals::Block());
  }
  const HangWatch watch(note, HangLimit());
  return Run(plan_file, options, std::move(ahead));
}

}  // namespace

absl::Status RunLauncher(const fs::path& plan_file, const LauncherOptions& options,
                         StandbyState ahead) {
  const fs::path note = NodeFolders(plan_file.parent_path()).died();
  RecordExitReasonOnTerminate(note);
  const absl::Status status = RunWatched(plan_file, note, options, std::move(ahead));
  const bool is_anothers = absl::IsFailedPrecondition(status);  // and at work
  if (!status.ok() && !is_anothers) RecordExitReason(note, status.message());
  return status;
}

absl::Status RunLauncher(const fs::path& plan_file) { return RunLauncher(plan_file, {}); }

}  // namespace tutti::launch
