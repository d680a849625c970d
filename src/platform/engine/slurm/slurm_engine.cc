#include "platform/engine/slurm/slurm_engine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/statvfs.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/process/command.h"
#include "base/process/held_folder.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "platform/engine/plan_files.h"
#include "platform/engine/slurm/compute_folder.h"
#include "platform/engine/slurm/slurm_messages.h"
#include "platform/engine/slurm/unshared_job.h"
#include "spec/types/enum_names.h"
#include "spec/types/service_endpoint.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;
using Stage = SlurmAllocation::Stage;

constexpr absl::Duration kGpusStay = absl::Minutes(1);     // not asked for anew for each job
constexpr absl::Duration kNodesLimit = absl::Seconds(10);  // for whom a user waits
constexpr absl::Duration kBeyondGrace = absl::Minutes(1);  // to deliver, for what was told to stop

absl::Status CheckAllocationId(const std::string& id) {
  if (id.empty() || id.front() == '.' || id.size() > 200 || absl::StrContains(id, '/')) {
    return absl::InvalidArgumentError(absl::StrCat("\"", id, "\" cannot name an allocation"));
  }
  return absl::OkStatus();
}

spec::SlurmSettings SettingsOf(const spec::SlurmCompute& compute, const Allocation& allocation) {
  spec::SlurmSettings settings = spec::Over(compute, allocation.slurm);
  const auto qos = compute.priority_qos.find(std::string(spec::Name(allocation.priority)));
  if (allocation.slurm.qos.empty() && qos != compute.priority_qos.end()) settings.qos = qos->second;
  return settings;
}

// A job is handed to Slurm if the disk that its nodes share has this room, which is more than the
// least with which its launchers begin (health/disk_check.h).
constexpr uint64_t kLeastRoom = 4 << 20;
constexpr uint64_t kLeastFiles = 256;

// Returns ResourceExhausted if the disk of the compute's folder has less.
absl::Status CheckRoom(const fs::path& folder) {
  struct statvfs space = {};
  if (::statvfs(folder.c_str(), &space) != 0) {
    return base::ErrnoStatus(absl::StrCat("look at ", folder.native()));
  }
  const uint64_t bytes = uint64_t{space.f_bavail} * space.f_frsize;
  // Some file systems have no fixed number of inodes, and report 0.
  const bool has_files = space.f_files == 0 || space.f_favail >= kLeastFiles;
  if (bytes >= kLeastRoom && has_files) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "the disk of ", folder.native(), ", which all nodes share, is full: it has ",
      has_files
          ? absl::StrCat(base::BinarySize(bytes), " left, and no job is handed to Slurm below ",
                         base::BinarySize(kLeastRoom))
          : absl::StrCat("room for ", space.f_favail,
                         " more files, and no job is handed to Slurm below ", kLeastFiles)));
}

std::string ProgramOf(const std::vector<std::string>& launcher) {
  return absl::StrJoin(launcher, " ", [](std::string* out, const std::string& argument) {
    absl::StrAppend(out, base::ShellQuoted(argument));
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlurmEngine>> SlurmEngine::Open(const SlurmEngineOptions& options,
                                                               SlurmCommands* commands) {
  TUTTI_RETURN_IF_ERROR(MakeComputeFolder(options.compute.folder));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd lock, base::HoldFolder(options.compute.folder));
  std::vector<fs::path> released;
  TUTTI_ASSIGN_OR_RETURN(auto known,
                         FindAllocations(options.compute.folder, options.settling, released));
  const bool has_jobs = std::any_of(known.begin(), known.end(), [](const auto& entry) {
    return entry.second.stage != Stage::kEnded;
  });
  TUTTI_ASSIGN_OR_RETURN(std::string id, IdOfComputeFolder(options.compute.folder, has_jobs));
  std::unique_ptr<SlurmEngine> engine(
      new SlurmEngine(options, commands, std::move(id), std::move(known)));
  engine->lock_ = base::ClosedInChildren(std::move(lock));
  for (fs::path& folder : released) engine->janitor_.Remove(std::move(folder));
  engine->thread_ = std::thread([raw = engine.get()] { raw->RunThread(); });
  return engine;
}

SlurmEngine::SlurmEngine(const SlurmEngineOptions& options, SlurmCommands* commands, std::string id,
                         std::map<std::string, SlurmAllocation> known)
    : options_(options),
      commands_(commands),
      id_(std::move(id)),
      comment_(absl::StrCat("tutti:", id_, ":")),
      at_work_(options.poll_interval),
      known_(std::move(known)) {}

SlurmEngine::~SlurmEngine() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
  for (auto& [id, known] : known_) known.EndCollector();
}

EngineTraits SlurmEngine::traits() const {
  return {.schedules_itself = true, .caches_by_node = !shared()};
}

absl::StatusOr<std::vector<Node>> SlurmEngine::ListNodes() {
  const std::string& partition = options_.compute.partition;
  const auto result = commands_->Run(
      {"sinfo", partition.empty() ? "--all" : absl::StrCat("--partition=", partition), "--Node",
       "--noheader", absl::StrCat("--format=", kNodeFormat)},
      base::Deadline::After(kNodesLimit), stopping_);
  if (!result.ok()) return absl::UnavailableError(result.status().message());
  if (!result->exit.ok()) return absl::UnavailableError(ErrorIn(result->err));
  return ReadNodes(result->out);
}

std::string SlurmEngine::WhyNeverOn(const spec::SlurmSettings& job, base::Deadline deadline) {
  const spec::SlurmSettings settings = spec::Over(options_.compute, job);
  const std::string asked = spec::GpusAskedFor(settings);
  if (asked.empty()) return "";
  const std::string& partition = settings.partition;
  if (SawGpus(partition)) return "";
  const auto told = commands_->Run(
      {"sinfo", partition.empty() ? "--all" : absl::StrCat("--partition=", partition), "--noheader",
       "--format=%G"},
      deadline, stopping_);
  if (!told.ok() || !told->exit.ok() || MayHaveGpus(told->out)) {
    absl::MutexLock lock(&gpus_mutex_);
    saw_gpus_[partition] = base::SteadyNow();
    return "";
  }
  return absl::StrCat(asked, " asks for GPUs, and no node ",
                      partition.empty() ? "" : absl::StrCat("of partition ", partition, " "),
                      "has any that Slurm knows of (sinfo -o %G): take it out, or name a ",
                      "partition whose nodes have them");
}

bool SlurmEngine::SawGpus(const std::string& partition) {
  absl::MutexLock lock(&gpus_mutex_);
  const auto saw = saw_gpus_.find(partition);
  return saw != saw_gpus_.end() && base::SteadyNow() - saw->second < kGpusStay;
}

bool SlurmEngine::GoesByFolder() const {
  if (!shared() || options_.launcher_file.empty()) return false;
  if (options_.compute.reach != spec::Reach::kUnsaid) {
    return options_.compute.reach == spec::Reach::kFolder;
  }
  const auto service = spec::ReadEndpoint(options_.launcher_file);
  return service.ok() && spec::IsOfThisMachineOnly(service->address);
}

Allocation SlurmEngine::Localized(Allocation allocation, bool by_folder) const {
  const fs::path root = options_.compute.folder;
  for (spec::NodePart& node : allocation.nodes) {
    const std::string number = absl::StrCat(node.node_index);
    node.directory = (root / allocation.id / number).native();
    if (node.former_directory.empty()) continue;
    // The folder that the former allocation has on this cluster, whatever path the service knew it
    // by.
    const fs::path former = fs::path(node.former_directory).filename();
    node.former_directory = (root / former / number).native();
  }
  allocation.plan.service_file = by_folder ? "" : (root / "launcher.json").native();
  allocation.plan.environments_directory = (root / "environments").native();
  allocation.plan.checks = options_.checks;
  if (shared()) allocation.plan.shared_folder = root.native();
  // In a shared folder the service itself removes what is too much.
  if (!shared()) allocation.plan.data_bytes = options_.data_bytes;
  return allocation;
}

absl::StatusOr<std::string> SlurmEngine::ScriptOf(const Allocation& allocation,
                                                  const BatchJob& job) const {
  const spec::SlurmSettings settings = SettingsOf(options_.compute, allocation);
  if (shared()) return BatchScript(settings, allocation, job);
  TUTTI_ASSIGN_OR_RETURN(spec::Endpoint service, spec::ReadEndpoint(options_.launcher_file));
  return UnsharedBatchScript(settings, allocation,
                             {.comment = job.comment,
                              .node_folder = options_.node_folder,
                              .id = id_,
                              .service = std::move(service),
                              .program = options_.program,
                              .storage_program = options_.storage_program});
}

absl::Status SlurmEngine::Start(const Allocation& given) {
  TUTTI_RETURN_IF_ERROR(CheckAllocationId(given.id));
  if (given.nodes.empty()) return absl::InvalidArgumentError("an allocation without nodes");
  absl::MutexLock lock(&mutex_);
  const auto known = known_.find(given.id);
  SlurmAllocation fresh;
  fresh.by_folder = known == known_.end() ? GoesByFolder() : known->second.by_folder;
  const Allocation allocation = Localized(given, fresh.by_folder);
  if (known != known_.end() && known->second.stage == Stage::kEnded) {
    return StartHere(known->second, allocation);
  }
  if (known == known_.end() && shared()) {
    TUTTI_RETURN_IF_ERROR(CheckRoom(options_.compute.folder));
  }
  fresh.folder = fs::path(options_.compute.folder) / allocation.id;
  fresh.couriers.resize(allocation.nodes.size());
  fresh.since = base::SteadyNow();
  const BatchJob job{comment_ + allocation.id, fresh.folder, ProgramOf(options_.launcher), shared(),
                     ProgramOf(options_.remover)};
  TUTTI_ASSIGN_OR_RETURN(const std::string script, ScriptOf(allocation, job));
  SlurmAllocation& at = known == known_.end() ? fresh : known->second;
  const spec::SlurmSettings settings = SettingsOf(options_.compute, allocation);
  at.command = SbatchCommand(settings, allocation, job);
  if (!allocation.avoid.empty()) {
    Allocation anywhere = allocation;
    anywhere.avoid.clear();
    at.command_anywhere = SbatchCommand(settings, anywhere, job);
  }
  if (!shared() && !NamesItsNodes(settings.options) && !NamesItsNodes(settings.shape)) {
    at.wish = {.nodes = allocation.prefer,
               .being_left = allocation.being_left,
               .partition = settings.partition,
               .count = static_cast<int>(allocation.nodes.size()),
               .cpus = CpusOfNode(settings, allocation)};
  }
  const bool is_submitted = at.stage == Stage::kSubmitted || at.HasBegun();
  if (is_submitted && shared()) return absl::OkStatus();
  if (!is_submitted) at.couriers.resize(allocation.nodes.size());
  // The thread that submits brings them to the disk. What was here before a loss of power may be
  // less than whole, and the script of nodes that share nothing says where the service is now.
  if (!is_submitted) TUTTI_RETURN_IF_ERROR(fresh.WritePlans(allocation));
  if (known == known_.end() && fresh.by_folder) TUTTI_RETURN_IF_ERROR(fresh.PrepareCollection());
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(fresh.folder / "batch.sh", script, 0700));
  if (known != known_.end()) return absl::OkStatus();
  known_.emplace(allocation.id, std::move(fresh));
  Call();
  return absl::OkStatus();
}

// The Slurm job is over: launchers that find its traces deliver from here what was left. Where
// none began there is nothing to deliver, and one that began now would run the job.
absl::Status SlurmEngine::StartHere(SlurmAllocation& known, Allocation allocation) {
  if (!shared()) return absl::OkStatus();
  known.EndCollector();
  if (known.by_folder) allocation.plan.service_file = options_.launcher_file.native();
  allocation.plan.is_courier = true;
  for (int i = 0; i < known.node_count(); ++i) {
    if (known.couriers[i] || !known.HasBegun(i) || known.IsDone(i)) continue;
    TUTTI_RETURN_IF_ERROR(WriteSharedPlan(allocation, known.shared_plan()));
    TUTTI_RETURN_IF_ERROR(known.WritePlan(allocation, i));
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log, base::Open(known.node(i) / "courier.log",
                                                                O_WRONLY | O_CREAT | O_APPEND));
    base::ChildOptions options;
    options.arguments = options_.launcher;
    options.arguments.push_back((known.node(i) / "plan.json").native());
    options.environment = base::CurrentEnvironment();
    options.directory = "/";
    options.stdout_fd = options.stderr_fd = log.get();
    options.new_session = true;
    TUTTI_ASSIGN_OR_RETURN(known.couriers[i], base::ChildProcess::Start(options));
  }
  return absl::OkStatus();
}

absl::Status SlurmEngine::Stop(const std::string& allocation_id, absl::Duration grace) {
  return TellToEnd(allocation_id, base::SteadyNow() + grace + kBeyondGrace);
}

absl::Status SlurmEngine::StopPatiently(const std::string& allocation_id, absl::Duration grace) {
  return TellToEnd(allocation_id, absl::InfiniteDuration());
}

absl::Status SlurmEngine::TellToEnd(const std::string& allocation_id, absl::Duration kill_at) {
  absl::MutexLock lock(&mutex_);
  const auto found = known_.find(allocation_id);
  if (found == known_.end() || found->second.stage == Stage::kEnded) return absl::OkStatus();
  SlurmAllocation& known = found->second;
  const bool was_patient = known.stop && known.kill_at == absl::InfiniteDuration();
  if (known.stop && (!was_patient || kill_at == absl::InfiniteDuration())) return absl::OkStatus();
  known.stop = true;
  known.kill_at = kill_at;
  if (was_patient) {
    known.signalled = false;
    known.next_cancel = -absl::InfiniteDuration();
  }
  LogError(known.MarkStopped());  // Slurm is told also where the folder takes no file
  Call();
  return absl::OkStatus();
}

// A job of Slurm's that does not end is ended by slurmd, or by whoever repairs its node.
absl::Status SlurmEngine::Kill(const std::string& allocation_id, int node_index) {
  TUTTI_RETURN_IF_ERROR(Stop(allocation_id, absl::ZeroDuration()));
  absl::MutexLock lock(&mutex_);
  const auto found = known_.find(allocation_id);
  if (found == known_.end()) return absl::OkStatus();
  SlurmAllocation& known = found->second;
  known.kill_at = std::min(known.kill_at, base::SteadyNow());
  Call();
  const bool is_node = node_index >= 0 && node_index < known.node_count();
  if (!is_node || !known.couriers[node_index]) return absl::OkStatus();
  return known.couriers[node_index]->SignalGroup(SIGKILL);
}

absl::StatusOr<std::vector<AllocationState>> SlurmEngine::Observe() {
  absl::MutexLock lock(&mutex_);
  WatchEnded();
  std::vector<AllocationState> states;
  for (auto& [id, known] : known_) {
    const bool must_know = known.stage == Stage::kSubmitted || known.stage == Stage::kUncertain;
    if (must_know && !polled_) {
      return slurm_.ok() ? absl::UnavailableError("Slurm has not been asked yet") : slurm_;
    }
    states.push_back(known.State(id, at_work_.Of(id)));
    if (states.back().waits && !slurm_.ok()) states.back().reason = std::string(slurm_.message());
  }
  return states;
}

void SlurmEngine::Refresh() {
  absl::MutexLock lock(&mutex_);
  hurry_ = true;
  Call();
}

absl::Status SlurmEngine::Release(const std::string& allocation_id) {
  absl::MutexLock lock(&mutex_);
  const auto found = known_.find(allocation_id);
  if (found == known_.end()) return absl::OkStatus();
  const AllocationState state = found->second.State(allocation_id, at_work_.Of(allocation_id));
  const bool alive = std::count(state.launcher_alive.begin(), state.launcher_alive.end(), true) > 0;
  if (alive || state.waits) {
    return absl::FailedPreconditionError(
        absl::StrCat("a launcher of allocation ", allocation_id, " still runs"));
  }
  found->second.EndCollector();
  // In one step it is no allocation any more, in whatever order its files go.
  TUTTI_RETURN_IF_ERROR(janitor_.RenameAndRemove(found->second.folder, kReleased));
  known_.erase(found);
  at_work_.Forget(allocation_id);
  return absl::OkStatus();
}

}  // namespace tutti::engine
