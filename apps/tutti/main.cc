// The program `tutti`: command line, service and launcher in one file to install. Only programs
// wire rooms together; what a command does is in platform/client, platform/api and platform/launch.
#include "absl/synchronization/mutex.h"
#include "base/log.h"
#include "platform/client/command_line.h"
#include "platform/launch/launch_programs.h"
#include "platform/launch/launcher.h"
#include "platform/launch/staging/python_environment.h"
#include "serve.h"

int main(int argc, char** argv) {
  // Debian's Abseil looks for cycles of locks under a lock of its own, at each lock of a mutex, and
  // ends the program for an order that might deadlock: good in tests, where it stays.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  if (const auto code = tutti::launch::RunLaunchProgram(argc, argv)) return *code;
  tutti::client::Wiring wiring;
  wiring.version = TUTTI_VERSION;
  wiring.serve = &tutti::Serve;
  wiring.launch = [](const std::filesystem::path& plan) {
    tutti::base::StartLogging("info");
    return tutti::launch::RunLauncher(plan);
  };
  wiring.build_environment =
      [](const tutti::spec::Environment& environment, const std::filesystem::path& environments,
         bool node_has_gpus) -> absl::StatusOr<tutti::client::BuiltEnvironment> {
    auto made = tutti::launch::MakeEnvironment(environment, environments, /*cancelled=*/false,
                                               node_has_gpus);
    if (!made.ok()) return made.status();
    return tutti::client::BuiltEnvironment{std::move(made->folder), std::move(made->note)};
  };
  return tutti::client::RunCommandLine(argc, argv, wiring);
}
