// MachineCounters says what a machine has used since it was booted and has left, by /proc, /sys and
// cgroups.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::launch {

struct MachineCounters {
  std::optional<double> cpu;                     // seconds of processors that were busy
  std::optional<double> memory_available;        // bytes, as Linux has estimated it
  std::optional<double> net_received, net_sent;  // bytes, by network cards
};

// Reads them below `root`, "/" but in tests. Of the network what has a device counts, once where
// cards are bonded or bridged; where there is none, as in a container, all but the loopback.
MachineCounters ReadMachine(const std::filesystem::path& root);

// Finds the cgroups that limit a process's memory, by the text of its /proc/PID/cgroup: itself and
// those above it that have a limit, the nearest first, of v1 and v2.
std::vector<std::filesystem::path> MemoryCgroups(absl::string_view cgroup,
                                                 const std::filesystem::path& root);
// Returns how much of the limit of such a cgroup is left, in bytes; pages of files that have not
// been used for long, which the kernel takes back first, do not count as used.
std::optional<double> LeftOfCgroup(const std::filesystem::path& cgroup);

}  // namespace tutti::launch
