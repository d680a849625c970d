#include "serve.h"

#include <signal.h>

#include <system_error>

#include "base/log.h"
#include "base/status.h"
#include "platform/api/api.h"
#include "platform/engine/local/local_engine.h"
#include "platform/launch/launch_programs.h"
#include "spdlog/spdlog.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

// Launchers are this same program, by its path as it is now: a build may replace the file
// meanwhile.
absl::StatusOr<std::unique_ptr<engine::Engine>> MakeEngine(const client::ServeOptions& options) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return base::ErrnoStatus("read /proc/self/exe", error.value());
  engine::LocalEngineOptions local;
  local.root = options.home / "nodes";
  local.node_count = options.nodes;
  local.launcher = {program.string(), "launch", "--plan"};
  local.standby = {program.string(), launch::kStandbyProgram};
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<engine::LocalEngine> engine,
                         engine::LocalEngine::Open(local));
  return engine;
}

}  // namespace

absl::Status Serve(const client::ServeOptions& options) {
  base::StartLogging(options.log_level);
  ::signal(SIGPIPE, SIG_IGN);
  api::ServeOptions serve;
  serve.directory = options.home;
  serve.address = options.bind;
  serve.port = options.port;
  serve.service.log_limit = static_cast<uint64_t>(options.log_limit) << 20;
  serve.make_engine = [&options] { return MakeEngine(options); };
  serve.on_ready = [&options](const std::string& url, const fs::path& token_file) {
    spdlog::info("tutti serves {} virtual nodes at {} (state in {}, token in {})", options.nodes,
                 url, options.home.string(), token_file.string());
  };
  return api::Serve(serve);
}

}  // namespace tutti
