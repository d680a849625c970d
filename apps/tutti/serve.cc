#include "serve.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "http/client/curl_library.h"
#include "platform.h"
#include "platform/engine/deferred_engine.h"
#include "platform/engine/local/local_engine.h"
#include "platform/engine/slurm/program_snapshot.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "platform/file_server/file_server_keeper.h"
#include "platform/launch/node/program_names.h"
#include "platform/service/health/machine_checker.h"
#include "platform/storage/storage_program.h"
#include "spdlog/spdlog.h"
#include "spec/site/site.h"
#include "spec/types/node_folder.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// A fault of this machine's folders that is known within this time ends the start.
constexpr absl::Duration kAtOnce = absl::Seconds(1);
constexpr int kLastPort = 65535;

// Launchers are this same program, by its path as it is now: a build may replace the file
// meanwhile.
absl::StatusOr<fs::path> ThisProgram() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return base::ErrnoStatus("read /proc/self/exe", error.value());
  return program;
}

// For tests of nodes that have more processors than their share of a small machine.
absl::StatusOr<int> CoresPerNode() {
  const char* const said = std::getenv("TUTTI_CORES_PER_NODE");
  int cores = 0;
  if (said == nullptr || absl::SimpleAtoi(said, &cores)) return cores;
  return absl::InvalidArgumentError(
      absl::StrCat("TUTTI_CORES_PER_NODE is \"", said, "\", and must be a number"));
}

// Its folder may be on a server that is away, for which nobody waits; what is wrong with it in
// another way shows at once.
absl::StatusOr<std::unique_ptr<engine::Engine>> MakeEngine(const client::ServeOptions& options,
                                                           const base::Clock* clock) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path program, ThisProgram());
  engine::LocalEngineOptions local;
  local.root = options.home / "nodes";
  local.node_count = options.nodes;
  local.launcher = {program.string(), "launch", "--plan"};
  local.standby = {program.string(), launch::kStandbyProgram};
  TUTTI_ASSIGN_OR_RETURN(local.cores_per_node, CoresPerNode());
  engine::DeferredEngineOptions deferred;
  TUTTI_ASSIGN_OR_RETURN(deferred.nodes, engine::LocalEngine::NodesOf(local));
  deferred.open = [local]() -> absl::StatusOr<std::unique_ptr<engine::Engine>> {
    return engine::LocalEngine::Open(local);
  };
  auto engine = std::make_unique<engine::DeferredEngine>(std::move(deferred), clock);
  TUTTI_RETURN_IF_ERROR(engine->TryNow(kAtOnce));
  return engine;
}

absl::StatusOr<std::unique_ptr<engine::Engine>> MakeCluster(
    const client::ServeOptions& options, const std::string& name, const spec::SlurmCompute& compute,
    const spec::Site& site, engine::SlurmCommands* commands, const fs::path& launcher_file) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path program, ThisProgram());
  engine::SlurmEngineOptions slurm;
  slurm.compute = compute;
  slurm.launcher = {program.string(), "launch", "--plan"};
  slurm.collector = {program.string(), launch::kCollectorProgram};
  slurm.remover = {program.string(), launch::kRemoverProgram};
  slurm.launcher_file = launcher_file;
  slurm.checks = site.health_check;
  slurm.data_bytes = static_cast<int64_t>(site.retention.data.size.value_or(0));
  if (const auto on_nodes = spec::NodeFolder(compute.folder)) {
    slurm.node_folder = *on_nodes;
    slurm.compute.folder = (options.home / "slurm" / name).native();
    // Nodes may have no libcurl: what is loaded goes along.
    http::LoadCurl().IgnoreError();
    TUTTI_ASSIGN_OR_RETURN(slurm.program, engine::PackThisProgram(options.home / "snapshots"));
    // Without it jobs that read stores are refused when they are submitted.
    if (const auto storage = storage::StorageProgram(); storage.ok()) {
      TUTTI_ASSIGN_OR_RETURN(
          slurm.storage_program,
          engine::PackProgramOf(storage::kStorageProgram, *storage, options.home / "snapshots"));
    }
  }
  return engine::SlurmEngine::Open(slurm, commands);
}

// As site.yml says when it is opened, so that what was wrong there can be corrected meanwhile.
absl::StatusOr<std::unique_ptr<engine::Engine>> OpenCluster(const client::ServeOptions& options,
                                                            const std::string& name,
                                                            engine::SlurmCommands* commands,
                                                            const fs::path& launcher_file) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(options.home));
  const auto compute = site.slurm_computes.find(name);
  if (compute == site.slurm_computes.end()) {
    return absl::NotFoundError("site.yml has no such cluster any more: put it back");
  }
  TUTTI_ASSIGN_OR_RETURN(
      std::unique_ptr<engine::Engine> engine,
      MakeCluster(options, name, compute->second, site, commands, launcher_file));
  spdlog::info("compute {} can be used", name);
  return engine;
}

// The computes that site.yml has as clusters now. One that cannot be opened keeps no other from
// being served.
absl::StatusOr<PlatformOptions::Clusters> MakeClusters(const client::ServeOptions& options,
                                                       engine::SlurmCommands* commands,
                                                       const base::Clock* clock,
                                                       const fs::path& launcher_file) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(options.home));
  PlatformOptions::Clusters clusters;
  for (const auto& entry : site.slurm_computes) {
    const bool caches_by_node = spec::NodeFolder(entry.second.folder).has_value();
    engine::DeferredEngineOptions deferred{
        .traits = {.schedules_itself = true, .caches_by_node = caches_by_node}};
    deferred.open = [&options, name = entry.first, commands, launcher_file] {
      return OpenCluster(options, name, commands, launcher_file);
    };
    clusters[entry.first] = std::make_unique<engine::DeferredEngine>(std::move(deferred), clock);
  }
  return clusters;
}

// Each running job has some dozens of files open here (JobLogs::kMostOpen), each call a connection.
void RaiseTheLimitOfOpenFiles() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// Blocks the signals that end the service, in this thread and in all that start from now on, and
// returns them.
sigset_t BlockSignalsOfEnd() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

PlatformOptions PlatformOptionsOf(const client::ServeOptions& options, const fs::path& portal,
                                  engine::SlurmCommands* commands, service::NodeChecker* checker,
                                  const base::Clock* clock) {
  PlatformOptions platform{
      .directory = options.home, .address = options.bind, .port = options.port};
  platform.tls = options.tls;
  platform.mlflow = options.mlflow;
  platform.portal = portal;
  platform.portal_port =
      options.portal_port.value_or(options.port == 0 ? 0 : options.port % kLastPort + 1);
  platform.service.node_checker = checker;
  platform.service.measures_usage = options.usage;
  platform.service.log_limit = static_cast<uint64_t>(options.log_limit) << 20;
  // File servers go on when the service ends, as jobs do.
  platform.start_beside = [&options, clock]() -> std::shared_ptr<void> {
    auto keeper = std::make_shared<file_server::FileServerKeeper>(
        file_server::KeeperOptions{.home = options.home, .clock = clock});
    keeper->Run();
    return keeper;
  };
  platform.make_engine = [&options, clock] { return MakeEngine(options, clock); };
  platform.make_clusters = [&options, commands, clock](const fs::path& launcher_file) {
    return MakeClusters(options, commands, clock, launcher_file);
  };
  return platform;
}

}  // namespace

absl::Status Serve(const client::ServeOptions& options) {
  base::StartLogging(options.log_level);
  ::signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = BlockSignalsOfEnd();
  RaiseTheLimitOfOpenFiles();
  engine::RealSlurmCommands commands;
  const auto checker = service::MakeMachineChecker({.home = options.home});
  const base::SystemClock clock;
  TUTTI_ASSIGN_OR_RETURN(const fs::path program, ThisProgram());
  // Its files may be built later.
  const fs::path portal = options.portal ? program.parent_path() / "portal" : fs::path();
  PlatformOptions with = PlatformOptionsOf(options, portal, &commands, checker.get(), &clock);
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(options.home));
  with.service.secret_key_file = spec::SecretKeyFile(site, options.home);
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<Platform> platform, Platform::Start(with));
  if (!with.tls) {
    spdlog::warn(
        "by --no-tls tokens, code and results go readably, and to whoever takes the port when this "
        "service is away: other users of this machine too");
  }
  if (::geteuid() == 0) {
    spdlog::warn(
        "this service runs as root, and so does every job: whoever may submit jobs may do anything "
        "on this machine; run it as a user of its own where that is too much (docs/security.md)");
  }
  spdlog::info("tutti serves {} virtual nodes at {} (state in {}, token in {})", options.nodes,
               platform->url(), options.home.string(), (options.home / "token").string());
  if (const auto url = platform->portal_url(); url.ok()) {
    spdlog::info("the portal is at {}/portal/ (tutti portal signs a browser in)", *url);
  }
  int signal = 0;
  ::sigwait(&signals, &signal);
  spdlog::info("signal {}: ending; jobs that run go on", signal);
  return absl::OkStatus();
}

}  // namespace tutti
