#include "serve.h"

#include <signal.h>

#include <system_error>

#include "absl/strings/match.h"
#include "base/log.h"
#include "base/status.h"
#include "platform/api/api.h"
#include "platform/engine/local/local_engine.h"
#include "platform/engine/slurm/program_snapshot.h"
#include "platform/engine/slurm/slurm_engine.h"
#include "platform/launch/node/program_names.h"
#include "spdlog/spdlog.h"
#include "spec/site/site.h"
#include "spec/types/node_folder.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// Launchers are this same program, by its path as it is now: a build may replace the file
// meanwhile.
absl::StatusOr<fs::path> ThisProgram() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return base::ErrnoStatus("read /proc/self/exe", error.value());
  return program;
}

absl::StatusOr<std::unique_ptr<engine::Engine>> MakeEngine(const client::ServeOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path program, ThisProgram());
  engine::LocalEngineOptions local;
  local.root = options.home / "nodes";
  local.node_count = options.nodes;
  local.launcher = {program.string(), "launch", "--plan"};
  local.standby = {program.string(), launch::kStandbyProgram};
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<engine::LocalEngine> engine,
                         engine::LocalEngine::Open(local));
  return engine;
}

absl::StatusOr<std::unique_ptr<engine::Engine>> MakeCluster(const client::ServeOptions& options,
                                                            const std::string& name,
                                                            const spec::SlurmCompute& compute,
                                                            engine::SlurmCommands* commands,
                                                            const fs::path& launcher_file) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path program, ThisProgram());
  engine::SlurmEngineOptions slurm;
  slurm.compute = compute;
  slurm.launcher = {program.string(), "launch", "--plan"};
  slurm.collector = {program.string(), launch::kCollectorProgram};
  slurm.launcher_file = launcher_file;
  if (const auto on_nodes = spec::NodeFolder(compute.folder)) {
    slurm.node_folder = *on_nodes;
    slurm.compute.folder = (options.home / "slurm" / name).native();
    TUTTI_ASSIGN_OR_RETURN(slurm.program, engine::PackThisProgram(options.home / "snapshots"));
  }
  return engine::SlurmEngine::Open(slurm, commands);
}

// The computes of site.yml that are clusters, as it is now. One that cannot be set up keeps no
// other from being served.
absl::StatusOr<api::ServeOptions::Clusters> MakeClusters(const client::ServeOptions& options,
                                                         engine::SlurmCommands* commands,
                                                         const fs::path& launcher_file) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(options.home));
  api::ServeOptions::Clusters clusters;
  for (const auto& [name, compute] : site.slurm_computes) {
    auto engine = MakeCluster(options, name, compute, commands, launcher_file);
    if (engine.ok()) {
      clusters.engines[name] = *std::move(engine);
    } else {
      clusters.broken[name] = std::string(engine.status().message());
      spdlog::error("compute {} cannot be used: {}", name, clusters.broken[name]);
    }
  }
  return clusters;
}

}  // namespace

absl::Status Serve(const client::ServeOptions& options) {
  base::StartLogging(options.log_level);
  ::signal(SIGPIPE, SIG_IGN);
  api::ServeOptions serve;
  serve.directory = options.home;
  serve.address = options.bind;
  serve.port = options.port;
  const bool within = absl::StartsWith(options.bind, "127.");
  serve.tls = options.tls.value_or(!within);
  serve.service.log_limit = static_cast<uint64_t>(options.log_limit) << 20;
  serve.make_engine = [&options] { return MakeEngine(options); };
  engine::RealSlurmCommands commands;
  serve.make_clusters = [&](const fs::path& launcher_file) {
    return MakeClusters(options, &commands, launcher_file);
  };
  serve.on_ready = [&](const std::string& url, const fs::path& token_file) {
    if (!serve.tls && !within) {
      spdlog::warn("by --no-tls tokens, code and results cross the network readable for others");
    }
    spdlog::info("tutti serves {} virtual nodes at {} (state in {}, token in {})", options.nodes,
                 url, options.home.string(), token_file.string());
  };
  return api::Serve(serve);
}

}  // namespace tutti
