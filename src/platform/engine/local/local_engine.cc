#include "platform/engine/local/local_engine.h"

#include <fcntl.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/engine/local/launcher_process.h"
#include "platform/engine/local/machine.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kReleased = ".released-";  // a folder that is being removed

// Names of allocations become names of folders.
absl::Status CheckId(const std::string& id) {
  if (id.empty() || id.front() == '.' || id.size() > 200 || absl::StrContains(id, '/')) {
    return absl::InvalidArgumentError(absl::StrCat("\"", id, "\" cannot name an allocation"));
  }
  return absl::OkStatus();
}

std::vector<Node> MakeNodes(const LocalEngineOptions& options) {
  const std::vector<int> cores = options.cores.empty() ? UsableCores() : options.cores;
  const int64_t memory = options.memory_bytes > 0 ? options.memory_bytes : UsableMemory() / 10 * 9;
  std::vector<Node> nodes;
  for (int i = 0; i < options.node_count; ++i) {
    Node node;
    node.name = absl::StrCat("n", i + 1);
    node.address = absl::StrCat("127.77.", i / 250, ".", i % 250 + 1);
    node.cores = ShareOf(cores, i, options.node_count);
    node.memory_bytes = memory / options.node_count;
    node.directory = (options.root / node.name).string();
    nodes.push_back(std::move(node));
  }
  return nodes;
}

template <class T>
std::vector<T> Share(const std::vector<T>& all, int index, int count) {
  const size_t size = all.size();
  if (size == 0) return {};
  if (static_cast<size_t>(count) > size) return {all[index % size]};
  return {all.begin() + size * index / count, all.begin() + size * (index + 1) / count};
}

}  // namespace

std::vector<int> ShareOf(const std::vector<int>& cores, int index, int node_count) {
  return Share(cores, index, node_count);
}

absl::StatusOr<std::unique_ptr<LocalEngine>> LocalEngine::Open(const LocalEngineOptions& options) {
  if (options.node_count < 1 || options.node_count > 16384) {
    return absl::InvalidArgumentError("the number of nodes must be from 1 to 16384");
  }
  if (!options.root.is_absolute() || options.launcher.empty()) {
    return absl::InvalidArgumentError("the engine needs an absolute root folder and a launcher");
  }
  std::unique_ptr<LocalEngine> engine(new LocalEngine(options, MakeNodes(options), UsableGpus()));
  for (const Node& node : engine->nodes_) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(node.directory));
  }
  TUTTI_RETURN_IF_ERROR(engine->PrepareHosts());
  engine->FindAllocations();
  return engine;
}

LocalEngine::LocalEngine(const LocalEngineOptions& options, std::vector<Node> nodes,
                         std::vector<std::string> gpus)
    : options_(options), nodes_(std::move(nodes)), gpus_(std::move(gpus)) {}

absl::Status LocalEngine::PrepareHosts() {
  std::vector<std::pair<std::string, std::string>> names;
  for (const Node& node : nodes_) names.emplace_back(node.name, node.address);
  const std::string base = base::ReadFile("/etc/hosts").value_or("127.0.0.1 localhost\n");
  const fs::path hosts = options_.root / "hosts";
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(hosts, HostsFile(base, names)));
  isolation_ = ProbeIsolation(hosts);
  if (isolation_ == Isolation::kNone) {
    spdlog::warn(
        "virtual nodes have no host names of their own: this user may not make namespaces");
  }
  return absl::OkStatus();
}

// Those that were started before this object was, by their folders. Also on nodes that there are no
// longer, since their launchers may still run.
void LocalEngine::FindAllocations() {
  absl::MutexLock lock(&mutex_);
  std::error_code error;
  for (const auto& node : fs::directory_iterator(options_.root, error)) {
    if (!node.is_directory(error)) continue;
    for (const auto& entry : fs::directory_iterator(node.path(), error)) {
      const std::string id = entry.path().filename().string();
      const auto text = base::ReadFile(entry.path() / "plan.json");
      const auto plan = spec::LaunchPlanFromJson(text.ok() ? *text : "");
      if (absl::StartsWith(id, kReleased) || absl::IsNotFound(text.status())) {
        base::RemoveTree(entry.path()).IgnoreError();
      } else if (!plan.ok()) {
        spdlog::error("{}: {}", entry.path().string(), plan.status().ToString());
      } else {
        gangs_[id][plan->node_index].folder = entry.path();
      }
    }
  }
}

EngineTraits LocalEngine::traits() const {
  return {.schedules_itself = false, .has_gpus = !gpus_.empty()};
}

absl::StatusOr<std::vector<Node>> LocalEngine::ListNodes() { return nodes_; }

bool LocalEngine::Placed::Alive() {
  if (child && child->Wait(base::Deadline::After(absl::ZeroDuration())).ok()) child.reset();
  for (const char* file : {"launcher", "lock"}) {
    const auto process = ReadLauncherProcess(folder / file);
    if (process && IsAlive(*process)) return true;
  }
  return false;
}

absl::StatusOr<const Node*> LocalEngine::NodeOf(const spec::LaunchPlan& plan) const {
  const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                 [&](const Node& n) { return n.name == plan.node().name; });
  if (node == nodes_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no node ", plan.node().name));
  }
  if (fs::path(plan.directory) != fs::path(node->directory) / plan.allocation_id) {
    return absl::InvalidArgumentError(
        absl::StrCat(plan.directory, " is not the allocation's folder on ", node->name));
  }
  return &*node;
}

absl::Status LocalEngine::Launch(const Node& node, Placed& placed) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd log,
                         base::Open(placed.folder / "launcher.log", O_WRONLY | O_CREAT | O_APPEND));
  base::ChildOptions options;
  options.arguments = options_.launcher;
  options.arguments.push_back((placed.folder / "plan.json").string());
  options.environment = base::CurrentEnvironment();
  if (!gpus_.empty()) {
    const int index = static_cast<int>(&node - nodes_.data());
    options.environment["CUDA_VISIBLE_DEVICES"] =
        absl::StrJoin(Share(gpus_, index, options_.node_count), ",");
  }
  options.directory = "/";
  options.stdout_fd = log.get();
  options.stderr_fd = log.get();
  options.new_session = true;
  options.before_exec = EnterNode({node.name, node.cores, options_.root / "hosts"}, isolation_);
  TUTTI_ASSIGN_OR_RETURN(base::ChildProcess child, base::ChildProcess::Start(options));
  const auto start_time = base::ProcessStartTime(child.pid());
  const LauncherProcess process{child.pid(), start_time.value_or(0)};
  placed.child = std::move(child);
  // Should this not get onto the disk, the launcher's own lock file still tells of it.
  return WriteLauncherProcess(placed.folder / "launcher", process);
}

absl::StatusOr<bool> LocalEngine::StartOn(const spec::LaunchPlan& plan, Gang& gang) {
  TUTTI_ASSIGN_OR_RETURN(const Node* const node, NodeOf(plan));
  Placed& placed = gang[plan.node_index];
  placed.folder = plan.directory;
  std::error_code error;
  if (placed.Alive() || fs::exists(placed.folder / "done", error)) return false;
  const bool fresh = !fs::exists(placed.folder / "started", error);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(placed.folder));
  if (fresh) {
    TUTTI_RETURN_IF_ERROR(
        base::WriteFileAtomic(placed.folder / "plan.json", spec::ToJson(plan), 0600));
  }
  TUTTI_RETURN_IF_ERROR(Launch(*node, placed));
  return fresh;
}

// Takes a start back. No process of the job can run yet: the gang is not complete.
absl::Status LocalEngine::Undo(Placed& placed) {
  if (placed.child) {
    TUTTI_RETURN_IF_ERROR(placed.child->SignalGroup(SIGKILL));
    TUTTI_RETURN_IF_ERROR(placed.child->Wait(base::Deadline::After(absl::Seconds(10))).status());
    placed.child.reset();
  }
  return base::RemoveTree(placed.folder);
}

absl::Status LocalEngine::Start(const Allocation& allocation) {
  TUTTI_RETURN_IF_ERROR(CheckId(allocation.id));
  for (const spec::LaunchPlan& plan : allocation.plans) {
    TUTTI_RETURN_IF_ERROR(NodeOf(plan).status());
  }
  absl::MutexLock lock(&mutex_);
  Gang& gang = gangs_[allocation.id];
  std::vector<int> begun;
  absl::Status failure;
  for (const spec::LaunchPlan& plan : allocation.plans) {
    const absl::StatusOr<bool> fresh = StartOn(plan, gang);
    if (!fresh.ok() || *fresh) begun.push_back(plan.node_index);
    if (fresh.ok()) continue;
    failure = base::Annotate(fresh.status(), absl::StrCat("starting on ", plan.node().name));
    break;
  }
  if (failure.ok()) return failure;
  for (const int node : begun) {
    const absl::Status undone = Undo(gang[node]);
    if (!undone.ok()) spdlog::error("{}: {}", allocation.id, undone.ToString());
    gang.erase(node);
  }
  if (gang.empty()) gangs_.erase(allocation.id);
  return failure;
}

absl::Status LocalEngine::Stop(const std::string& allocation_id, absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  const auto gang = gangs_.find(allocation_id);
  if (gang == gangs_.end()) return absl::OkStatus();
  absl::Status first;
  for (auto& [index, placed] : gang->second) {
    // The one in `lock` if there are two: it is the one at work.
    for (const char* file : {"lock", "launcher"}) {
      const auto process = ReadLauncherProcess(placed.folder / file);
      if (!process || !IsAlive(*process)) continue;
      first.Update(AskToStop(*process, grace));
      break;
    }
  }
  return first;
}

absl::StatusOr<std::vector<AllocationState>> LocalEngine::Observe() {
  absl::MutexLock lock(&mutex_);
  std::vector<AllocationState> states;
  for (auto& [id, gang] : gangs_) {
    AllocationState state{id, std::vector<bool>(gang.empty() ? 0 : gang.rbegin()->first + 1)};
    for (auto& [index, placed] : gang) state.launcher_alive[index] = placed.Alive();
    states.push_back(std::move(state));
  }
  return states;
}

absl::Status LocalEngine::Release(const std::string& allocation_id) {
  absl::MutexLock lock(&mutex_);
  const auto gang = gangs_.find(allocation_id);
  if (gang == gangs_.end()) return absl::OkStatus();
  for (auto& [index, placed] : gang->second) {
    if (placed.Alive()) {
      return absl::FailedPreconditionError(
          absl::StrCat("a launcher of allocation ", allocation_id, " still runs"));
    }
  }
  for (auto& [index, placed] : gang->second) {
    // Renamed first: a folder that a crash leaves half removed must not look like an allocation.
    const fs::path away = placed.folder.parent_path() / absl::StrCat(kReleased, allocation_id);
    std::error_code error;
    fs::rename(placed.folder, away, error);
    TUTTI_RETURN_IF_ERROR(base::RemoveTree(error ? placed.folder : away));
  }
  gangs_.erase(gang);
  return absl::OkStatus();
}

}  // namespace tutti::engine
