#include "platform/engine/local/local_engine.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/gpus/usable_gpus.h"
#include "base/status.h"
#include "platform/engine/local/usable_cores.h"
#include "platform/engine/plan_files.h"

namespace tutti::engine {
namespace {

namespace fs = std::filesystem;

// Names of allocations become names of folders.
absl::Status CheckId(const std::string& id) {
  if (id.empty() || id.front() == '.' || id.size() > 200 || absl::StrContains(id, '/')) {
    return absl::InvalidArgumentError(absl::StrCat("\"", id, "\" cannot name an allocation"));
  }
  return absl::OkStatus();
}

// I of "nI"; 0 of other names.
int NumberOfNode(absl::string_view name) {
  int number = 0;
  return absl::ConsumePrefix(&name, "n") && absl::SimpleAtoi(name, &number) ? number : 0;
}

template <class T>
std::vector<T> Share(const std::vector<T>& all, int index, int count) {
  const size_t size = all.size();
  if (size == 0) return {};
  if (static_cast<size_t>(count) > size) return {all[index % size]};
  return {all.begin() + size * index / count, all.begin() + size * (index + 1) / count};
}

std::vector<Node> MakeNodes(const LocalEngineOptions& options,
                            const std::vector<std::string>& gpus) {
  const std::vector<int> cores = options.cores.empty() ? UsableCores() : options.cores;
  const int64_t memory = options.memory_bytes > 0 ? options.memory_bytes : UsableMemory() / 10 * 9;
  std::vector<Node> nodes;
  for (int i = 0; i < options.node_count; ++i) {
    Node node;
    node.name = absl::StrCat("n", i + 1);
    node.address = absl::StrCat("127.77.", i / 250, ".", i % 250 + 1);
    node.cores = options.cores_per_node > 0 ? TurnOf(cores, i, options.cores_per_node)
                                            : ShareOf(cores, i, options.node_count);
    node.memory_bytes = memory / options.node_count;
    node.directory = (options.root / node.name).string();
    node.gpus = Share(gpus, i, options.node_count);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

// Exists once an allocation with containers has been started: without it nobody asks podman.
fs::path ContainersMark(const fs::path& root) { return root / "containers"; }

// Returns the folder that a waiting launcher has made ahead for the next allocation.
fs::path AheadOn(const Node& node) { return fs::path(node.directory) / ".ahead"; }

}  // namespace

std::vector<int> ShareOf(const std::vector<int>& cores, int index, int node_count) {
  return Share(cores, index, node_count);
}

std::vector<int> TurnOf(const std::vector<int>& cores, int index, int count) {
  std::vector<int> turn;
  for (int i = 0; i < count; ++i) {
    turn.push_back(cores[(static_cast<size_t>(index) * count + i) % cores.size()]);
  }
  std::sort(turn.begin(), turn.end());
  return turn;
}

absl::StatusOr<std::vector<Node>> LocalEngine::NodesOf(const LocalEngineOptions& options) {
  if (options.node_count < 1 || options.node_count > 16384) {
    return absl::InvalidArgumentError("the number of nodes must be from 1 to 16384");
  }
  if (!options.root.is_absolute() || options.launcher.empty()) {
    return absl::InvalidArgumentError("the engine needs an absolute root folder and a launcher");
  }
  const size_t usable = options.cores.empty() ? UsableCores().size() : options.cores.size();
  if (options.cores_per_node < 0 || static_cast<size_t>(options.cores_per_node) > usable) {
    return absl::InvalidArgumentError(absl::StrCat("a node cannot have ", options.cores_per_node,
                                                   " processors: there are ", usable));
  }
  return MakeNodes(options, base::UsableGpus(base::CurrentEnvironment()));
}

absl::StatusOr<std::unique_ptr<LocalEngine>> LocalEngine::Open(const LocalEngineOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<Node> nodes, NodesOf(options));
  std::unique_ptr<LocalEngine> engine(
      new LocalEngine(options, std::move(nodes), base::UsableGpus(base::CurrentEnvironment())));
  for (const Node& node : engine->nodes_) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(node.directory));
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(options.root / "shared"));
  TUTTI_RETURN_IF_ERROR(engine->PrepareHosts());
  engine->FindAllocations();
  engine->RemoveStrayContainers();
  engine->KeepStandbys();
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
  TUTTI_RETURN_IF_ERROR(base::UpdateFile(hosts, HostsFile(base, names)));
  isolation_ = ProbeIsolation(hosts);
  if (isolation_ == Isolation::kNone) {
    spdlog::warn(
        "virtual nodes have no host names of their own: this user may not make namespaces");
  }
  return absl::OkStatus();
}

// Finds allocations that were started before this object was, by their folders; also on nodes that
// there are no longer, since their launchers may still run.
void LocalEngine::FindAllocations() {
  absl::MutexLock lock(&mutex_);
  std::error_code error;
  for (const auto& node : fs::directory_iterator(options_.root, error)) {
    if (NumberOfNode(node.path().filename().string()) <= 0) continue;
    for (const auto& entry : fs::directory_iterator(node.path(), error))
      FindAllocation(entry.path());
  }
  RemoveStraySharedPlans();
}

// Removes the containers of allocations whose folders are gone, and their records with them.
void LocalEngine::RemoveStrayContainers() {
  std::error_code error;
  if (fs::exists(ContainersMark(options_.root), error)) left_containers_.RemoveStray(options_.root);
}

// Removes plans that no launcher has: a service may have ended between one and the nodes' folders.
void LocalEngine::RemoveStraySharedPlans() {
  std::error_code error;
  std::vector<std::string> ids;
  for (const auto& entry : fs::directory_iterator(options_.root / "shared", error)) {
    ids.push_back(entry.path().stem().string());
  }
  for (const std::string& id : ids) RemoveSharedPlan(id);
}

void LocalEngine::RemoveSharedPlan(const std::string& allocation_id) {
  std::error_code error;
  if (LaunchersOf(allocation_id).empty()) fs::remove(SharedPlanOf(allocation_id), error);
}

fs::path LocalEngine::SharedPlanOf(const std::string& allocation_id) const {
  return options_.root / "shared" / (allocation_id + ".json");
}

void LocalEngine::FindAllocation(const fs::path& folder) {
  if (PlacedLauncher::IsBeingRemoved(folder)) {
    janitor_.Remove(folder);
    return;
  }
  const std::string id = folder.filename().string();
  std::error_code error;
  if (!CheckId(id).ok() || !fs::is_directory(folder, error)) return;
  const auto text = base::ReadFile(folder / "plan.json");
  auto part = spec::NodePartOf(text.ok() ? *text : "");
  if (part.ok()) {
    gangs_[id].try_emplace(part->node_index, folder, *std::move(part));
    return;
  }
  PlacedLauncher launcher(folder);
  // An empty plan was announced to nobody, although a launcher that was to have its folder may
  // still live.
  const bool is_untold = text.ok() && text->empty() && !launcher.HasBegun();
  if (!is_untold && (launcher.HasBegun() || launcher.Alive())) {
    spdlog::error("{}: {}", folder.string(), part.status().ToString());
    without_plan_[id].push_back(std::move(launcher));
  } else if (const absl::Status removed = launcher.Remove(janitor_); !removed.ok()) {
    spdlog::error("{}", removed.ToString());
  }
}

std::vector<PlacedLauncher*> LocalEngine::LaunchersOf(const std::string& allocation_id) {
  std::vector<PlacedLauncher*> launchers;
  if (const auto gang = gangs_.find(allocation_id); gang != gangs_.end()) {
    for (auto& [index, placed] : gang->second) launchers.push_back(&placed);
  }
  if (const auto found = without_plan_.find(allocation_id); found != without_plan_.end()) {
    for (PlacedLauncher& placed : found->second) launchers.push_back(&placed);
  }
  return launchers;
}

EngineTraits LocalEngine::traits() const { return {.schedules_itself = false}; }

absl::StatusOr<std::vector<Node>> LocalEngine::ListNodes() { return nodes_; }

absl::StatusOr<int> LocalEngine::NodeOf(const Allocation& allocation,
                                        const spec::NodePart& part) const {
  const std::string& name = allocation.plan.nodes.at(part.node_index).name;
  const int index = NumberOfNode(name) - 1;
  if (index < 0 || index >= static_cast<int>(nodes_.size()) || nodes_[index].name != name) {
    return absl::InvalidArgumentError(absl::StrCat("there is no node ", name));
  }
  if (fs::path(part.directory) != fs::path(nodes_[index].directory) / allocation.id) {
    return absl::InvalidArgumentError(
        absl::StrCat(part.directory, " is not the allocation's folder on ", name));
  }
  return index;
}

base::ChildOptions LocalEngine::LauncherOn(int index, std::vector<std::string> arguments) const {
  const Node& node = nodes_[index];
  base::ChildOptions options;
  options.arguments = std::move(arguments);
  options.environment = base::CurrentEnvironment();
  if (!gpus_.empty()) {
    options.environment["CUDA_VISIBLE_DEVICES"] = absl::StrJoin(node.gpus, ",");
  }
  options.before_exec = EnterNode({node.name, node.cores, options_.root / "hosts"}, isolation_);
  return options;
}

absl::Status LocalEngine::StartOn(const Allocation& allocation, const spec::NodePart& part,
                                  PlacedLauncher& placed) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(allocation, part));
  if (IsThere(placed) || placed.IsDone()) return absl::OkStatus();
  if (placed.Launched() && !placed.HasPlan()) {  // without its traces it would run once more
    return absl::DataLossError(absl::StrCat(placed.folder().string(), " was removed while it ran"));
  }
  const fs::path plan_file = placed.folder() / "plan.json";
  if (placed.HasBegun()) {
    TUTTI_RETURN_IF_ERROR(placed.MakeFolder());
  } else {
    std::optional<Standby> standby;
    if (standbys_ != nullptr) standby = standbys_->Take(node);
    // The folder made ahead belongs to that standby, which holds the lock in it.
    TUTTI_RETURN_IF_ERROR(standby ? placed.MakeFolderOf(AheadOn(nodes_[node]))
                                  : placed.MakeFolder());
    TUTTI_RETURN_IF_ERROR(
        placed.WritePlan(PlanText(allocation, part, SharedPlanOf(allocation.id))));
    if (standby && standby->SendPlan(plan_file)) {
      return placed.TakeOver(std::move(standby->process), standby->own);
    }
  }
  std::vector<std::string> arguments = options_.launcher;
  arguments.push_back(plan_file.string());
  return placed.Launch(LauncherOn(node, std::move(arguments)));
}

void LocalEngine::KeepStandbys() {
  if (options_.standby.empty()) return;
  standbys_ =
      std::make_unique<StandbyLaunchers>(options_.node_count, [this](int node, int stdin_fd) {
        std::vector<std::string> arguments = options_.standby;
        arguments.push_back(AheadOn(nodes_[node]).string());
        base::ChildOptions options = LauncherOn(node, std::move(arguments));
        options.environment["LD_BIND_NOW"] = "1";  // it has the time to look all functions up
        options.directory = "/";
        options.stdin_fd = stdin_fd;
        options.new_session = true;
        return base::ChildProcess::Start(options);
      });
}

absl::Status LocalEngine::Start(const Allocation& allocation) {
  TUTTI_RETURN_IF_ERROR(CheckId(allocation.id));
  for (const spec::NodePart& part : allocation.nodes) {
    TUTTI_RETURN_IF_ERROR(NodeOf(allocation, part).status());
  }
  absl::MutexLock lock(&mutex_);
  if (!allocation.plan.environment.image.empty()) {
    TUTTI_RETURN_IF_ERROR(base::Open(ContainersMark(options_.root), O_WRONLY | O_CREAT).status());
  }
  TUTTI_RETURN_IF_ERROR(WriteSharedPlan(allocation, SharedPlanOf(allocation.id)));
  Gang& gang = gangs_[allocation.id];
  std::vector<int> fresh;  // have no trace of the allocation yet: what is taken back on an error
  absl::Status status;
  for (const spec::NodePart& part : allocation.nodes) {
    PlacedLauncher& placed = gang.try_emplace(part.node_index, part.directory, part).first->second;
    if (!placed.HasBegun() && !placed.Launched() && !placed.Alive()) {
      fresh.push_back(part.node_index);
    }
    status = base::Annotate(
        StartOn(allocation, part, placed),
        absl::StrCat("starting on ", allocation.plan.nodes.at(part.node_index).name));
    if (!status.ok()) break;
  }
  if (!status.ok()) TakeBack(gang, fresh);
  if (gang.empty()) gangs_.erase(allocation.id);
  if (!status.ok()) RemoveSharedPlan(allocation.id);
  return status;
}

void LocalEngine::TakeBack(Gang& gang, const std::vector<int>& nodes) {
  for (const int node : nodes) {
    const absl::Status undone = gang.at(node).Undo();
    if (!undone.ok()) spdlog::error("{}", undone.ToString());
    gang.erase(node);
  }
}

absl::Status LocalEngine::Stop(const std::string& allocation_id, absl::Duration grace) {
  absl::MutexLock lock(&mutex_);
  absl::Status first;
  for (const PlacedLauncher* placed : LaunchersOf(allocation_id)) first.Update(placed->Stop(grace));
  return first;
}

absl::Status LocalEngine::Kill(const std::string& allocation_id, int node_index) {
  absl::MutexLock lock(&mutex_);
  if (const auto gang = gangs_.find(allocation_id); gang != gangs_.end()) {
    const auto placed = gang->second.find(node_index);
    return placed == gang->second.end() ? absl::OkStatus() : placed->second.Kill();
  }
  const auto found = without_plan_.find(allocation_id);
  if (found == without_plan_.end()) return absl::OkStatus();
  const bool is_one = node_index >= 0 && node_index < static_cast<int>(found->second.size());
  return is_one ? found->second[node_index].Kill() : absl::OkStatus();
}

bool LocalEngine::IsThere(PlacedLauncher& placed) {
  return placed.Alive() || left_containers_.Hold(placed.folder());
}

void LocalEngine::Tell(PlacedLauncher& placed, size_t index, AllocationState& state) {
  const bool runs = placed.Alive();
  state.launcher_alive[index] = runs || left_containers_.Hold(placed.folder());
  state.occupied.push_back(placed.Occupied());
  if (runs || !state.launcher_alive[index]) return;
  const std::string problem = left_containers_.Problem(placed.folder());
  if (problem.empty()) return;
  absl::StrAppend(&state.left, state.left.empty() ? "" : "; ", "the containers on ",
                  state.occupied.back().name, " of a launcher that died: ", problem);
}

absl::StatusOr<std::vector<AllocationState>> LocalEngine::Observe() {
  absl::MutexLock lock(&mutex_);
  std::vector<AllocationState> states;
  for (auto& [id, gang] : gangs_) {
    AllocationState state{id, std::vector<bool>(gang.empty() ? 0 : gang.rbegin()->first + 1)};
    for (auto& [index, placed] : gang) Tell(placed, index, state);
    states.push_back(std::move(state));
  }
  for (auto& [id, launchers] : without_plan_) {
    if (gangs_.contains(id)) continue;  // Release takes both
    AllocationState state{id, std::vector<bool>(launchers.size())};
    for (size_t i = 0; i < launchers.size(); ++i) Tell(launchers[i], i, state);
    states.push_back(std::move(state));
  }
  return states;
}

absl::Status LocalEngine::Release(const std::string& allocation_id) {
  absl::MutexLock lock(&mutex_);
  const std::vector<PlacedLauncher*> launchers = LaunchersOf(allocation_id);
  for (PlacedLauncher* placed : launchers) {
    if (IsThere(*placed)) {
      return absl::FailedPreconditionError(absl::StrCat("a launcher of allocation ", allocation_id,
                                                        ", or what it has left, still runs"));
    }
  }
  for (const PlacedLauncher* placed : launchers) TUTTI_RETURN_IF_ERROR(placed->Remove(janitor_));
  gangs_.erase(allocation_id);
  without_plan_.erase(allocation_id);
  RemoveSharedPlan(allocation_id);
  return absl::OkStatus();
}

}  // namespace tutti::engine
