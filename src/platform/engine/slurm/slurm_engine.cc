#include "platform/engine/slurm/slurm_engine.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/command.h"
#include "base/process/held_folder.h"
#include "base/status.h"
#include "platform/engine/slurm/slurm_messages.h"
#include "platform/engine/slurm/unshared_job.h"
#include "spec/types/endpoint.h"
#include "spec/types/names.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;
using Stage = SlurmAllocation::Stage;

constexpr absl::Duration kGpusStay = absl::Minutes(1);     // not asked for anew for each job
constexpr absl::Duration kNodesLimit = absl::Seconds(10);  // for whom a user waits
constexpr absl::Duration kBeyondGrace = absl::Minutes(1);  // to deliver, for what was told to stop

constexpr absl::string_view kReleased = ".released-";  // what is being removed

absl::Status CheckAllocationId(const std::string& id) {
  if (id.empty() || id.front() == '.' || id.size() > 200 || absl::StrContains(id, '/')) {
    return absl::InvalidArgumentError(absl::StrCat("\"", id, "\" cannot name an allocation"));
  }
  return absl::OkStatus();
}

// One that was moved is the same by its number, one that was restored or mounted anew by its path.
struct FolderIdentity {
  std::string path, number;
  bool IsAnothers(const FolderIdentity& other) const {
    return path != other.path && number != other.number;
  }
};

absl::StatusOr<FolderIdentity> IdentityOf(const fs::path& folder) {
  std::error_code error;
  const fs::path path = fs::canonical(folder, error);
  struct stat info = {};
  if (error) return base::ErrnoStatus(folder.native(), error.value());
  if (::stat(path.c_str(), &info) != 0) return base::ErrnoStatus(path.native());
  return FolderIdentity{path.native(), absl::StrCat(info.st_ino)};
}

// Where the folder was when its id was last used; where it is if nothing says that.
absl::StatusOr<FolderIdentity> FormerIdentity(const fs::path& folder, const FolderIdentity& now) {
  const auto text = base::ReadFile(folder / "place", 1 << 16);
  if (absl::IsNotFound(text.status())) return now;
  TUTTI_RETURN_IF_ERROR(text.status());
  const std::pair<std::string, std::string> lines = absl::StrSplit(*text, absl::MaxSplits('\n', 1));
  return FolderIdentity{lines.second, lines.first};
}

// What tells the Slurm jobs of this folder from all others, also those of another with its name and
// of one that it was copied from.
absl::StatusOr<std::string> IdOf(const fs::path& folder, bool has_jobs) {
  TUTTI_ASSIGN_OR_RETURN(const FolderIdentity now, IdentityOf(folder));
  TUTTI_ASSIGN_OR_RETURN(const FolderIdentity former, FormerIdentity(folder, now));
  const bool is_copy = now.IsAnothers(former);
  if (is_copy && has_jobs) {
    return absl::FailedPreconditionError(absl::StrCat(
        folder.native(), " is a copy of ", former.path,
        ", with jobs that are that one's: give this service another folder, or, if the other is "
        "used no more, rm ",
        (folder / "place").native()));
  }
  auto id = base::ReadFile(folder / "id", 100);
  if (!id.ok() && !absl::IsNotFound(id.status())) return id.status();
  if (is_copy || !id.ok()) {
    id = base::RandomHex(4);
    TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(folder / "id", *id));
  }
  TUTTI_RETURN_IF_ERROR(
      base::WriteFileAtomic(folder / "place", absl::StrCat(now.number, "\n", now.path)));
  return std::string(absl::StripAsciiWhitespace(*id));
}

// What earlier engines left. One that is there and cannot be read now is an error: what Slurm has
// of it would seem to be nobody's.
absl::StatusOr<std::map<std::string, SlurmAllocation>> FindAllocations(const fs::path& folder,
                                                                       absl::Duration settling) {
  std::map<std::string, SlurmAllocation> known;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (absl::StartsWith(name, kReleased)) SayIfWrong(base::RemoveTree(entry->path()));
    if (name.front() == '.') continue;
    auto found = SlurmAllocation::Find(entry->path());
    if (absl::IsNotFound(found.status())) continue;
    TUTTI_RETURN_IF_ERROR(found.status());
    found->settles = base::SteadyNow() + settling;
    known.emplace(name, *std::move(found));
  }
  if (error) return base::ErrnoStatus(folder.native(), error.value());
  return known;
}

// Logs and results on their way lie in it, and the scripts of jobs. One that was there is left as
// its owner has it.
absl::Status MakeOwnFolder(fs::path folder) {
  if (!folder.has_filename()) folder = folder.parent_path();  // "/shared/me/"
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(fs::absolute(folder).parent_path()));
  struct stat info = {};
  if ((::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) ||
      ::stat(folder.c_str(), &info) != 0) {
    return base::ErrnoStatus(absl::StrCat("mkdir ", folder.native()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (info.st_mode & S_ISVTX) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("others may write to ", folder.native(),
                     ", so put a job there that runs as you: chmod go-w ", folder.native()));
  }
  if ((info.st_mode & S_IRWXO) != 0) {
    spdlog::warn("everybody may look into {}, where jobs' logs and results lie: chmod o= {}",
                 folder.native(), folder.native());
  }
  return absl::OkStatus();
}

spec::SlurmSettings SettingsOf(const spec::SlurmCompute& compute, const Allocation& allocation) {
  spec::SlurmSettings settings = spec::Over(compute, allocation.slurm);
  const auto qos = compute.priority_qos.find(std::string(spec::Name(allocation.priority)));
  if (allocation.slurm.qos.empty() && qos != compute.priority_qos.end()) settings.qos = qos->second;
  return settings;
}

std::string ProgramOf(const std::vector<std::string>& launcher) {
  return absl::StrJoin(launcher, " ", [](std::string* out, const std::string& argument) {
    absl::StrAppend(out, base::ShellQuoted(argument));
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<SlurmEngine>> SlurmEngine::Open(const SlurmEngineOptions& options,
                                                               SlurmCommands* commands) {
  TUTTI_RETURN_IF_ERROR(MakeOwnFolder(options.compute.folder));
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd lock, base::HoldFolder(options.compute.folder));
  TUTTI_ASSIGN_OR_RETURN(auto known, FindAllocations(options.compute.folder, options.settling));
  const bool has_jobs = std::any_of(known.begin(), known.end(), [](const auto& entry) {
    return entry.second.stage != Stage::kEnded;
  });
  TUTTI_ASSIGN_OR_RETURN(std::string id, IdOf(options.compute.folder, has_jobs));
  std::unique_ptr<SlurmEngine> engine(
      new SlurmEngine(options, commands, std::move(id), std::move(known)));
  engine->lock_ = std::move(lock);
  engine->thread_ = std::thread([raw = engine.get()] { raw->RunThread(); });
  return engine;
}

SlurmEngine::SlurmEngine(const SlurmEngineOptions& options, SlurmCommands* commands, std::string id,
                         std::map<std::string, SlurmAllocation> known)
    : options_(options),
      commands_(commands),
      id_(std::move(id)),
      comment_(absl::StrCat("tutti:", id_, ":")),
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

EngineTraits SlurmEngine::traits() const { return {.schedules_itself = true}; }

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
    absl::MutexLock lock(&mutex_);
    saw_gpus_[partition] = base::SteadyNow();
    return "";
  }
  return absl::StrCat(asked, " asks for GPUs, and no node ",
                      partition.empty() ? "" : absl::StrCat("of partition ", partition, " "),
                      "has any that Slurm knows of (sinfo -o %G): take it out, or name a ",
                      "partition whose nodes have them");
}

bool SlurmEngine::SawGpus(const std::string& partition) {
  absl::MutexLock lock(&mutex_);
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
  for (size_t i = 0; i < allocation.plans.size(); ++i) {
    spec::LaunchPlan& plan = allocation.plans[i];
    plan.directory = (root / allocation.id / absl::StrCat(i)).native();
    if (!plan.former_directory.empty()) {  // of that allocation, wherever the service saw it
      const fs::path former = fs::path(plan.former_directory).filename();
      plan.former_directory = (root / former / absl::StrCat(i)).native();
    }
    plan.service_file = by_folder ? "" : (root / "launcher.json").native();
    plan.environments_directory = (root / "environments").native();
  }
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
                              .program = options_.program});
}

absl::Status SlurmEngine::Start(const Allocation& given) {
  TUTTI_RETURN_IF_ERROR(CheckAllocationId(given.id));
  if (given.plans.empty()) return absl::InvalidArgumentError("an allocation without nodes");
  absl::MutexLock lock(&mutex_);
  const auto known = known_.find(given.id);
  SlurmAllocation fresh;
  fresh.by_folder = known == known_.end() ? GoesByFolder() : known->second.by_folder;
  const Allocation allocation = Localized(given, fresh.by_folder);
  if (known != known_.end() && known->second.stage == Stage::kEnded) {
    return StartHere(known->second, allocation);
  }
  fresh.folder = fs::path(options_.compute.folder) / allocation.id;
  fresh.couriers.resize(allocation.plans.size());
  fresh.since = base::SteadyNow();
  const BatchJob job{comment_ + allocation.id, fresh.folder, ProgramOf(options_.launcher),
                     shared()};
  TUTTI_ASSIGN_OR_RETURN(const std::string script, ScriptOf(allocation, job));
  SlurmAllocation& at = known == known_.end() ? fresh : known->second;
  at.command = SbatchCommand(SettingsOf(options_.compute, allocation), allocation, job);
  const bool is_submitted = at.stage == Stage::kSubmitted || at.HasBegun();
  if (is_submitted && shared()) return absl::OkStatus();
  if (!is_submitted) at.couriers.resize(allocation.plans.size());
  // The thread that submits brings them to the disk. What was here before a loss of power may be
  // less than whole, and the script of nodes that share nothing says where the service is now.
  for (size_t i = 0; i < allocation.plans.size() && !is_submitted; ++i) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(fresh.node(i)));
    TUTTI_RETURN_IF_ERROR(
        base::ReplaceFile(fresh.node(i) / "plan.json", spec::ToJson(allocation.plans[i]), 0600));
  }
  if (known == known_.end() && fresh.by_folder) TUTTI_RETURN_IF_ERROR(fresh.PrepareCollection());
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(fresh.folder / "batch.sh", script, 0700));
  if (known != known_.end()) return absl::OkStatus();
  known_.emplace(allocation.id, std::move(fresh));
  Call();
  return absl::OkStatus();
}

// The Slurm job is over: launchers that find its traces deliver from here what was left. Where
// none began there is nothing to deliver, and one that began now would run the job.
absl::Status SlurmEngine::StartHere(SlurmAllocation& known, const Allocation& allocation) {
  if (!shared()) return absl::OkStatus();
  known.EndCollector();
  for (int i = 0; i < known.node_count(); ++i) {
    if (known.couriers[i] || !known.HasBegun(i) || known.IsDone(i)) continue;
    const fs::path plan = known.node(i) / "plan.json";
    spec::LaunchPlan here = allocation.plans.at(i);
    if (known.by_folder) here.service_file = options_.launcher_file.native();
    TUTTI_RETURN_IF_ERROR(base::ReplaceFile(plan, spec::ToJson(here), 0600));
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log, base::Open(known.node(i) / "courier.log",
                                                                O_WRONLY | O_CREAT | O_APPEND));
    base::ChildOptions options;
    options.arguments = options_.launcher;
    options.arguments.push_back(plan.native());
    options.environment = base::CurrentEnvironment();
    options.directory = "/";
    options.stdout_fd = options.stderr_fd = log.get();
    options.new_session = true;
    TUTTI_ASSIGN_OR_RETURN(known.couriers[i], base::ChildProcess::Start(options));
  }
  return absl::OkStatus();
}

absl::Status SlurmEngine::Stop(const std::string& allocation_id, absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  const auto found = known_.find(allocation_id);
  if (found == known_.end() || found->second.stage == Stage::kEnded) return absl::OkStatus();
  SlurmAllocation& known = found->second;
  if (known.stop) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(known.MarkStopped());
  known.stop = true;
  known.kill_at = base::SteadyNow() + grace + kBeyondGrace;
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
  std::vector<AllocationState> states;
  for (auto& [id, known] : known_) {
    const bool must_know = known.stage == Stage::kSubmitted || known.stage == Stage::kUncertain;
    if (must_know && !polled_) {
      return slurm_.ok() ? absl::UnavailableError("Slurm has not been asked yet") : slurm_;
    }
    states.push_back(known.State(id));
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
  const AllocationState state = found->second.State(allocation_id);
  const bool alive = std::count(state.launcher_alive.begin(), state.launcher_alive.end(), true) > 0;
  if (alive || state.waits) {
    return absl::FailedPreconditionError(
        absl::StrCat("a launcher of allocation ", allocation_id, " still runs"));
  }
  found->second.EndCollector();
  // In one step it is no allocation any more, in whatever order its files go.
  const fs::path away = found->second.folder.parent_path() / absl::StrCat(kReleased, allocation_id);
  std::error_code error;
  fs::rename(found->second.folder, away, error);
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(error ? found->second.folder : away));
  known_.erase(found);
  return absl::OkStatus();
}

}  // namespace tutti::engine
