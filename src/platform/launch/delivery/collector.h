// Runs a collector, beside the service, for an allocation whose launchers do not reach it: it
// follows their spools in the folder that they share with this machine and makes their calls
// (docs/formats/launch-plan.md) in their place, so that the service cannot tell the difference.
// Answers in spool/acknowledged.json. What it knows it can lose: another collector goes on where
// the service says it is.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace tutti::launch {

// The file in the allocation's folder that its collector locks.
inline constexpr char kCollectorLock[] = "collector";

// Is the body of `launch-collector FOLDER SERVICE_FILE`; FOLDER has the nodes' folders, by number.
// Waits for another collector of that folder to end. Returns once the service has everything of
// every node, or knows the allocation no more. `word_every`: how often launchers are told that a
// service is there which takes nothing now, as its disk is full.
absl::Status RunCollector(const std::filesystem::path& folder,
                          const std::filesystem::path& service_file,
                          absl::Duration word_every = absl::Minutes(10));

}  // namespace tutti::launch
