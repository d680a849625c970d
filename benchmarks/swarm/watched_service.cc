#include "watched_service.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "platform.h"
#include "platform/engine/local/local_engine.h"
#include "platform/engine/plan_files.h"
#include "platform/launch/node/program_names.h"

namespace tutti::swarm {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Fail(const std::string& what) {
  std::cerr << what << std::endl;
  ::_exit(1);
}

// The launch plans of an allocation, as the local engine writes them: their bytes together.
absl::StatusOr<uint64_t> WritePlans(const engine::Allocation& allocation, const fs::path& folder) {
  const fs::path shared = folder / "shared.json";
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  TUTTI_RETURN_IF_ERROR(engine::WriteSharedPlan(allocation, shared));
  std::error_code none;
  uint64_t bytes = fs::exists(shared, none) ? fs::file_size(shared, none) : 0;
  for (const spec::NodePart& node : allocation.nodes) {
    const std::string text = engine::PlanText(allocation, node, shared);
    TUTTI_RETURN_IF_ERROR(base::ReplaceFile(folder / absl::StrCat(node.node_index), text, 0600));
    bytes += text.size();
  }
  return bytes;
}

// What SwarmEngine::Start has told; nothing before.
std::optional<WatchedService::Allocation> ReadAllocation(const fs::path& folder) {
  const auto text = base::ReadFile(folder / "allocation");
  if (!text.ok()) return std::nullopt;
  std::istringstream words(*text);
  WatchedService::Allocation placed;
  words >> placed.id >> placed.launcher_token >> placed.plan_bytes >> placed.plan_seconds;
  return placed;
}

// Nodes whose launchers the swarm plays. Tells by a file which allocation it was given, its
// launchers' token, and what its plans took.
class SwarmEngine final : public engine::Engine {
 public:
  SwarmEngine(fs::path folder, int nodes, bool schedules_itself)
      : folder_(std::move(folder)), nodes_(nodes), schedules_itself_(schedules_itself) {
    const auto known = ReadAllocation(folder_);  // a service before this one had it
    if (known) state_ = StateOf(known->id, static_cast<size_t>(nodes_));
  }

  engine::EngineTraits traits() const override { return {.schedules_itself = schedules_itself_}; }
  absl::StatusOr<std::vector<engine::Node>> ListNodes() override {
    std::vector<engine::Node> nodes;
    for (int i = 0; i < nodes_; ++i) {
      nodes.push_back({.name = absl::StrCat("n", i + 1),
                       .address = absl::StrCat("127.77.", i / 250, ".", i % 250 + 1),
                       .cores = {0},
                       .memory_bytes = int64_t{1} << 30,
                       .directory = (folder_ / "scratch").native()});
    }
    return nodes;
  }
  absl::Status Start(const engine::Allocation& allocation) override {
    state_ = StateOf(allocation.id, allocation.nodes.size());
    if (schedules_itself_) {
      TUTTI_ASSIGN_OR_RETURN(state_.nodes, ListNodes());
    }
    const absl::Duration began = base::SteadyNow();
    TUTTI_ASSIGN_OR_RETURN(const uint64_t bytes, WritePlans(allocation, folder_ / "plans"));
    return base::WriteFileAtomic(
        folder_ / "allocation",
        absl::StrCat(allocation.id, " ", allocation.plan.launcher_token, " ", bytes, " ",
                     absl::ToDoubleSeconds(base::SteadyNow() - began)));
  }
  absl::Status Stop(const std::string&, absl::Duration) override { return absl::OkStatus(); }
  absl::Status Kill(const std::string&, int node) override {
    state_.launcher_alive.at(static_cast<size_t>(node)) = false;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<engine::AllocationState>> Observe() override {
    if (state_.id.empty()) return std::vector<engine::AllocationState>();
    return std::vector<engine::AllocationState>{state_};
  }
  absl::Status Release(const std::string&) override {
    state_ = {};
    return absl::OkStatus();
  }

 private:
  static engine::AllocationState StateOf(const std::string& id, size_t nodes) {
    return {.id = id, .launcher_alive = std::vector<bool>(nodes, true)};
  }

  const fs::path folder_;
  const int nodes_;
  const bool schedules_itself_;
  engine::AllocationState state_;  // calls of an engine come one after the other
};

// The virtual nodes as `tutti serve` has them.
absl::StatusOr<std::unique_ptr<engine::Engine>> MakeLocalEngine(
    const WatchedService::Options& options) {
  const fs::path program = fs::canonical("/proc/self/exe").parent_path() / "tutti";
  TUTTI_ASSIGN_OR_RETURN(
      std::unique_ptr<engine::LocalEngine> engine,
      engine::LocalEngine::Open({.root = options.home / "nodes",
                                 .node_count = options.local_nodes,
                                 .launcher = {program.native(), "launch", "--plan"},
                                 .standby = {program.native(), launch::kStandbyProgram}}));
  return engine;
}

PlatformOptions PlatformOptionsOf(const WatchedService::Options& options) {
  const bool beside = options.local_nodes > 0;
  PlatformOptions platform{.directory = options.home, .port = 0, .tls = true};
  const auto swarm = [&options, beside] {
    return std::make_unique<SwarmEngine>(options.folder, options.nodes, beside);
  };
  platform.make_engine = [&options, beside,
                          swarm]() -> absl::StatusOr<std::unique_ptr<engine::Engine>> {
    if (beside) return MakeLocalEngine(options);
    return swarm();
  };
  platform.make_clusters = [beside,
                            swarm](const fs::path&) -> absl::StatusOr<PlatformOptions::Clusters> {
    PlatformOptions::Clusters clusters;
    if (beside) clusters["swarm"] = swarm();
    return clusters;
  };
  return platform;
}

// A job may name the computes that site.yml has.
absl::Status NameComputes(const WatchedService::Options& options) {
  if (options.local_nodes == 0) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(options.home));
  return base::WriteFileAtomic(
      options.home / "site.yml",
      absl::StrCat("computes: {swarm: {type: slurm, folder: ", options.folder.native(), "}}\n"));
}

[[noreturn]] void Serve(const WatchedService::Options& options, int ready) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  base::StartLogging("error");
  if (const absl::Status named = NameComputes(options); !named.ok()) Fail(named.ToString());
  const auto platform = Platform::Start(PlatformOptionsOf(options));
  if (!platform.ok()) Fail(platform.status().ToString());
  if (::write(ready, "r", 1) != 1) Fail("the swarm has gone");
  while (true) ::pause();
}

}  // namespace

WatchedService::WatchedService(const Options& options) : options_(options) {
  Begin();
  const base::Deadline deadline = base::Deadline::After(absl::Minutes(1));
  while (!HasBegun() && !deadline.Expired()) absl::SleepFor(absl::Milliseconds(1));
  if (ready_ >= 0) Fail("the service does not start");
}

void WatchedService::Kill() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void WatchedService::Begin() {
  int ready[2];
  if (::pipe2(ready, O_CLOEXEC) != 0) Fail("pipe");
  pid_ = ::fork();
  if (pid_ == 0) {
    constexpr int kReady = STDERR_FILENO + 1;
    if (ready[1] != kReady && ::dup2(ready[1], kReady) < 0) Fail("dup2");
    ::closefrom(kReady + 1);  // the launchers' connections, if there are any
    Serve(options_, kReady);
  }
  ::close(ready[1]);
  ready_ = ready[0];
}

bool WatchedService::HasBegun() {
  if (ready_ < 0) return true;
  pollfd told{.fd = ready_, .events = POLLIN};
  if (::poll(&told, 1, 0) <= 0) return false;
  char byte;
  if (::read(ready_, &byte, 1) != 1) Fail("the service does not start");
  ::close(std::exchange(ready_, -1));
  return true;
}

spec::Endpoint WatchedService::for_users() const {
  return *spec::ReadEndpoint(options_.home / "service.json");
}

spec::Endpoint WatchedService::for_launchers() const {
  return *spec::ReadEndpoint(options_.home / "launcher.json");
}

WatchedService::Allocation WatchedService::AwaitAllocation() const {
  const base::Deadline deadline = base::Deadline::After(absl::Minutes(1));
  while (!deadline.Expired()) {
    if (const auto placed = ReadAllocation(options_.folder)) return *placed;
    absl::SleepFor(absl::Milliseconds(1));
  }
  Fail("the service places no job");
}

std::string WatchedService::StatusLine(const std::string& name) const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/status"));
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return line.substr(name.size() + 1);
  }
  return "0";
}

int WatchedService::Threads() const { return std::stoi(StatusLine("Threads")); }

double WatchedService::ResidentMegabytes() const { return std::stod(StatusLine("VmRSS")) / 1024; }

absl::Duration WatchedService::ProcessorTime() const {
  std::ifstream file(absl::StrCat("/proc/", pid_, "/stat"));
  std::string text;
  std::getline(file, text);
  std::istringstream rest(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int field = 3; field < 14; ++field) rest >> skipped;
  double user = 0, system = 0;
  rest >> user >> system;
  return absl::Seconds((user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace tutti::swarm
