// Runs the program `tutti`: parses its command line and calls the function of the command. Talking
// to a service is this room's own; what else the program can do is handed in by apps/tutti.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "platform/client/commands/commands.h"

namespace tutti::client {

struct ServeOptions {
  std::filesystem::path home;  // absolute
  int nodes = 2;               // this machine as so many virtual nodes
  int port = 6280;             // 0: any free one
  std::string bind = "127.0.0.1";
  bool tls = true;                      // HTTPS
  bool mlflow = false;                  // answers MLflow's clients too
  bool portal = true;                   // serves its page on loopback
  std::optional<int> portal_port = {};  // 0: any free one; nothing: the one behind `port`
  std::string log_level = "info";
  bool usage = true;     // launchers measure what their processes use
  int log_limit = 1024;  // MiB of a job's output that are kept
};

struct Wiring {
  std::string version;
  std::function<absl::Status(const ServeOptions&)> serve;  // until it is stopped
  std::function<absl::Status(const std::filesystem::path& plan)>
      launch;                          // on a node, for the engine
  BuildEnvironment build_environment;  // as launchers do
};

// Parses, runs, reports errors on standard error; the program's exit code. Starts no thread before
// it calls `serve` or `launch`.
int RunCommandLine(int argc, const char* const* argv, const Wiring& wiring);

}  // namespace tutti::client
