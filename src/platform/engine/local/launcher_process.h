// Identifies a launcher by its process id and start time, which together name a process for good,
// and finds it again from a file that holds them: {"pid": P, "start_time": T}.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/process/child_process.h"

namespace tutti::engine {

struct LauncherProcess {
  pid_t pid = 0;
  uint64_t start_time = 0;  // clock ticks since boot

  friend bool operator==(const LauncherProcess&, const LauncherProcess&) = default;
};

// Returns that of a child that nobody has waited for.
LauncherProcess ProcessOf(const base::ChildProcess& child);

// Reads the file; nullopt if there is no such file or nothing readable in it.
std::optional<LauncherProcess> ReadLauncherProcess(const std::filesystem::path& file);
absl::Status WriteLauncherProcess(const std::filesystem::path& file,
                                  const LauncherProcess& process);

// Returns whether it runs; a zombie has ended.
bool IsAlive(const LauncherProcess& process);

// Sends SIGTERM with the grace, in milliseconds, as its value. OK if it has ended.
absl::Status AskToStop(const LauncherProcess& process, absl::Duration grace);

// Sends SIGKILL. OK if it has ended.
absl::Status KillAtOnce(const LauncherProcess& process);

}  // namespace tutti::engine
