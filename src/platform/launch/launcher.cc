#include "platform/launch/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/delivery/service_link.h"
#include "platform/launch/delivery/unkept.h"
#include "platform/launch/environment/mlflow_stores.h"
#include "platform/launch/environment/node_facts.h"
#include "platform/launch/environment/ray_cluster.h"
#include "platform/launch/environment/slurm_placement.h"
#include "platform/launch/mpi/mpi_agreement.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/mpi/pmi_server.h"
#include "platform/launch/node/claim.h"
#include "platform/launch/node/exit_reason.h"
#include "platform/launch/node/hang_watch.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/node/process_limit.h"
#include "platform/launch/node/process_tree.h"
#include "platform/launch/node/signals.h"
#include "platform/launch/node_processes.h"
#include "platform/launch/staging/container_start.h"
#include "platform/launch/staging/staging.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

// One launcher's life, told in Run.
class Launcher {
 public:
  Launcher(spec::LaunchPlan plan, const LauncherOptions& options, Signals signals, NodeFacts facts,
           std::unique_ptr<EventLog> events, std::unique_ptr<Spool> spool)
      : plan_(std::move(plan)),
        options_(options),
        signals_(std::move(signals)),
        facts_(std::move(facts)),
        events_(std::move(events)),
        spool_(std::move(spool)),
        delivery_(Delivery::Make(plan_, events_.get(), spool_.get(), &news_)) {}

  absl::Status Run() {
    events_->Append("preparing", nlohmann::json::object());
    if (!BeginsAtOnce()) delivery_->Begin();
    return Finish(PrepareAndRun());
  }

  // For the second launcher of an allocation.
  absl::Status ClearUp() {
    const absl::Status ended =
        EndProcessesOf(plan_.allocation_id, base::Deadline::After(absl::Seconds(30)));
    RemoveProcessLimits(plan_);
    ForgetContainers();
    if (events_->finished()) return Deliver();
    const std::string recorded = ReadExitReason(NodeFolders(plan_.directory).died());
    const std::string reason =
        recorded.empty() ? absl::StrCat("the launcher of node ", plan_.node().name, " died")
                         : recorded;
    events_->Append("lost", {{"reason", reason}});
    // What results there are belong to the user all the same.
    RemoveUnusedMlflowStores(plan_);
    const absl::Status uploaded =
        delivery_->SendResults(base::Deadline::After(options_.delivery_limit));
    if (!uploaded.ok()) spdlog::warn("{}", uploaded.ToString());
    return Finish(ended.ok() ? absl::InternalError(reason) : ended);
  }

 private:
  // Its processes start within a moment, and NodeProcesses lets the delivery begin after them.
  bool BeginsAtOnce() const {
    return !MustSyncClaim() && StagesAtOnce(plan_) && plan_.nodes.size() == 1 && !WantsMpi(plan_);
  }

  bool IsRay() const { return plan_.distribution.kind == spec::DistributionKind::kRay; }

  bool MustSyncClaim() const { return plan_.boot_id.empty(); }

  absl::Status PrepareAndRun() {
    for (const std::string& name : OverriddenNames(plan_)) {
      spdlog::warn("variable {} is set by tutti, the job's value is not used", name);
    }
    TUTTI_ASSIGN_OR_RETURN(const Staged staged, Prepare());
    nlohmann::json prepared = nlohmann::json::object();
    const std::string note = NoteOf(staged);
    if (!note.empty()) prepared["note"] = note;
    events_->Append("prepared", std::move(prepared));
    const absl::Time code_is_there = TimeOfCode();
    TUTTI_RETURN_IF_ERROR(AwaitGo());
    NodeFacts facts = With(staged, facts_);
    TUTTI_ASSIGN_OR_RETURN(MpiAgreement mpi, AgreeOnWorld(facts));
    facts.pmi = mpi.pmi_address;
    const std::unique_ptr<PmiServer> pmi = std::move(mpi.pmi);
    const std::string command = IsRay() ? RayCommand(plan_, facts, staged.command) : staged.command;
    NodeProcesses processes(plan_, options_,
                            {events_.get(), spool_.get(), delivery_.get(), &signals_, &news_},
                            command, facts, std::move(mpi));
    const absl::Status status = processes.Run();
    if (processes.failed()) TUTTI_RETURN_IF_ERROR(MarkFailed());
    ForgetContainers();
    if (absl::IsAborted(status)) return status;
    events_->Append("finalizing", WhatIsLeft(code_is_there));
    const absl::Status uploaded =
        delivery_->SendResults(base::Deadline::After(options_.delivery_limit));
    if (pmi != nullptr && status.ok()) ServeToTheLast(*pmi);
    return status.ok() ? uploaded : status;
  }

  // Ranks of other nodes that finalize after this node's would crash if their PMI went away.
  void ServeToTheLast(PmiServer& pmi) {
    while (pmi.busy() && !delivery_->gone() && !signals_.Take()) {
      pollfd waiting[3] = {
          {signals_.fd(), POLLIN, 0}, {news_.fd(), POLLIN, 0}, {pmi.idle().fd(), POLLIN, 0}};
      ::poll(waiting, 3, -1);
      news_.Clear();
      pmi.idle().Clear();
    }
  }

  // By the clock of the folder's file system; without code all in it is the job's own.
  absl::Time TimeOfCode() const {
    return plan_.snapshot.empty() ? absl::InfinitePast()
                                  : ChangeTime(NodeFolders(plan_.directory).events());
  }

  nlohmann::json WhatIsLeft(absl::Time code_is_there) const {
    nlohmann::json left = nlohmann::json::object();
    RemoveUnusedMlflowStores(plan_);
    const Results results = ResultsOf(plan_);
    if (const std::string note = LeftOutNote(results); !note.empty()) left["note"] = note;
    const UnkeptFiles unkept = UnkeptBelow(NodeFolders(plan_.directory).work(), code_is_there);
    if (unkept.largest.empty()) return left;
    left["kept_files"] = results.files.size();
    left["unkept_more"] = unkept.more;
    for (const Unkept& one : unkept.largest) {
      left["unkept"].push_back({{"path", base::BoundedUtf8(one.path, 200)},
                                {"bytes", one.bytes},
                                {"result", one.result}});
    }
    return left;
  }

  std::string NoteOf(const Staged& staged) const {
    if (staged.image.empty()) return staged.note;
    const std::string remark = ContainerRemark(plan_, facts_.gpus);
    return absl::StrCat(staged.note, staged.note.empty() || remark.empty() ? "" : "; ", remark);
  }

  // For who starts launchers on a cluster, whose accounting is to say so.
  absl::Status MarkFailed() const {
    return base::Open(NodeFolders(plan_.directory).failed(), O_WRONLY | O_CREAT).status();
  }

  // What ran in them has ended.
  void ForgetContainers() const {
    const absl::Status removed = RemoveContainers(plan_);
    if (!removed.ok()) spdlog::warn("{}", removed.ToString());
  }

  // Where the claim must be durable it is made so beside the staging.
  absl::StatusOr<Staged> Prepare() {
    const bool must_sync = MustSyncClaim();
    if (!must_sync && StagesAtOnce(plan_)) {
      return Stage(plan_, delivery_.get(), /*cancelled=*/false);
    }
    absl::Status durable;
    std::thread sync;
    if (must_sync) {
      sync = std::thread([&] { durable = MakeClaimDurable(NodeFolders(plan_.directory)); });
    }
    absl::StatusOr<Staged> staged = Beside<Staged>(
        [&](const std::atomic<bool>& cancelled) {
          return Stage(plan_, delivery_.get(), cancelled);
        },
        [&] { delivery_->AbandonCode(); });
    if (sync.joinable()) sync.join();
    TUTTI_RETURN_IF_ERROR(durable);
    return staged;
  }

  absl::StatusOr<MpiAgreement> AgreeOnWorld(const NodeFacts& facts) {
    if (!WantsMpi(plan_)) return MpiAgreement();
    return Beside<MpiAgreement>(
        [&](const std::atomic<bool>& cancelled) { return AgreeOnMpi(plan_, facts, cancelled); },
        [] {});
  }

  // Does `work` on a thread of its own, so that this one can be told to stop meanwhile; then
  // `cancelled` is set and `abandon` called.
  template <class Result>
  absl::StatusOr<Result> Beside(
      const std::function<absl::StatusOr<Result>(const std::atomic<bool>& cancelled)>& work,
      const std::function<void()>& abandon) {
    std::atomic<bool> cancelled = false, done = false;
    absl::StatusOr<Result> result = absl::UnknownError("");
    std::thread thread([&] {
      result = work(cancelled);
      done = true;
      news_.Notify();
    });
    const absl::Status waited = AwaitOrStop([&done] { return done.load(); },
                                            base::Deadline::After(options_.delivery_limit));
    if (!waited.ok()) {
      cancelled = true;
      abandon();
    }
    thread.join();
    TUTTI_RETURN_IF_ERROR(waited);
    return result;
  }

  // A node that is the whole gang waits for nobody: it is prepared, so all are.
  absl::Status AwaitGo() {
    if (plan_.nodes.size() == 1) {
      return AwaitOrStop([] { return true; }, base::Deadline::After(options_.go_limit));
    }
    return AwaitOrStop([this] { return delivery_->go(); },
                       base::Deadline::After(options_.go_limit));
  }

  // Until `ready` holds, which is looked at whenever there is news. Cancelled on a signal, Aborted
  // when the service does not know the allocation, DeadlineExceeded.
  absl::Status AwaitOrStop(const std::function<bool()>& ready, base::Deadline deadline) {
    while (true) {
      if (signals_.Take()) {
        NoteToldToEnd(plan_.directory);
        const absl::Status why = WhyToldToEnd(plan_.directory, absl::Now());
        if (absl::IsDeadlineExceeded(why)) return why;
        events_->Append("unlaunched", nlohmann::json::object());
        return absl::CancelledError("stopped before its processes began");
      }
      if (delivery_->gone()) return absl::AbortedError(kNobodyWaits);
      if (ready()) return absl::OkStatus();
      if (deadline.Expired()) {
        return absl::DeadlineExceededError("the other nodes of the job did not get ready in time");
      }
      pollfd waiting[2] = {{signals_.fd(), POLLIN, 0}, {news_.fd(), POLLIN, 0}};
      ::poll(waiting, 2, deadline.RemainingMillis());
      news_.Clear();
    }
  }

  // Reports the end and stays until everything has been acknowledged.
  absl::Status Finish(const absl::Status& status) {
    if (!status.ok()) {
      spdlog::warn("{}", status.ToString());
      MarkFailed().IgnoreError();
    }
    const base::Deadline deadline = base::Deadline::After(options_.delivery_limit);
    TUTTI_RETURN_IF_ERROR(OkIfGone(delivery_->AwaitOutput(deadline)));
    nlohmann::json end = {{"ok", status.ok()}, {"reason", std::string(status.message())}};
    if (absl::IsCancelled(status)) end["told"] = true;
    events_->Append("finished", std::move(end));
    return Deliver();
  }

  absl::Status Deliver() {
    const base::Deadline deadline = base::Deadline::After(options_.delivery_limit);
    TUTTI_RETURN_IF_ERROR(OkIfGone(delivery_->AwaitEvents(deadline)));
    if (!plan_.service_file.empty()) spool_->SaveAcknowledged(events_->size());
    const NodeFolders folders(plan_.directory);
    RemoveShortScratch(folders);
    if (IsRay()) {
      std::error_code error;
      fs::remove_all(RayFolder(plan_), error);
    }
    return base::Open(folders.done(), O_WRONLY | O_CREAT).status();
  }

  static absl::Status OkIfGone(const absl::Status& status) {
    return absl::IsAborted(status) ? absl::OkStatus() : status;
  }

  const spec::LaunchPlan plan_;
  const LauncherOptions options_;
  Signals signals_;
  const NodeFacts facts_;
  Wakeup news_;
  const std::unique_ptr<EventLog> events_;
  const std::unique_ptr<Spool> spool_;
  const std::unique_ptr<Delivery> delivery_;
};

// An engine that ends the allocation leaves the file and signals who has the lock. Whoever blocks
// the signal, takes the lock and then looks here misses neither.
void HeedEarlyStop(const NodeFolders& folders) {
  std::error_code error;
  if (fs::exists(folders.stop(), error)) ::kill(::getpid(), SIGTERM);  // for Signals::Take
}

absl::Status Run(const fs::path& plan_file, const LauncherOptions& options, Ahead ahead) {
  TUTTI_RETURN_IF_ERROR(BecomeSubreaper());
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(plan_file, 64 << 20));
  TUTTI_ASSIGN_OR_RETURN(spec::LaunchPlan plan, spec::LaunchPlanFromJson(text));
  if (const char* gang = std::getenv("TUTTI_GANG")) TUTTI_RETURN_IF_ERROR(TakePlace(gang, plan));
  const NodeFolders folders(plan.directory);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folders.spool()));
  TUTTI_ASSIGN_OR_RETURN(const Claim claim,
                         ClaimAllocation(folders, plan.boot_id, std::move(ahead.lock)));
  HeedEarlyStop(folders);
  TUTTI_ASSIGN_OR_RETURN(auto events, EventLog::Open(folders.events()));
  TUTTI_ASSIGN_OR_RETURN(
      auto spool, Spool::Open(folders.spool(), plan.node().first_rank, plan.node().process_count));
  NodeFacts facts = ahead.facts ? *std::move(ahead.facts) : FactsOfThisNode();
  Launcher launcher(std::move(plan), options, *std::move(ahead.signals), std::move(facts),
                    std::move(events), std::move(spool));
  return claim.first ? launcher.Run() : launcher.ClearUp();
}

}  // namespace

absl::Status RunLauncher(const fs::path& plan_file, const LauncherOptions& options, Ahead ahead) {
  if (!ahead.signals) {
    TUTTI_ASSIGN_OR_RETURN(ahead.signals, Signals::Block());
  }
  const fs::path note = NodeFolders(plan_file.parent_path()).died();
  RecordExitReasonOnTerminate(note);
  const HangWatch watch(note, HangLimit());
  const absl::Status status = Run(plan_file, options, std::move(ahead));
  const bool is_anothers = absl::IsFailedPrecondition(status);  // and at work
  if (!status.ok() && !is_anothers) RecordExitReason(note, status.message());
  return status;
}

absl::Status RunLauncher(const fs::path& plan_file) { return RunLauncher(plan_file, {}); }

}  // namespace tutti::launch
