// Finds and runs the program podman. It finds its storage, registries and credentials as it does
// for the user (containers.conf, storage.conf, registries.conf, `podman login`); tutti has no
// settings of its own for it. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::container {

// Returns podman's path. NotFound, with the remedy, if this machine has none.
absl::StatusOr<std::string> FindPodman();

// Returns what `podman ARGUMENTS` wrote to standard output, without the newline at its end. Both
// outputs go to files beside `log`; `variables` go over its environment. FailedPrecondition:
// ErrorIn of what it said; Cancelled.
absl::StatusOr<std::string> RunPodman(const std::vector<std::string>& arguments,
                                      const std::filesystem::path& log,
                                      const std::atomic<bool>& cancelled,
                                      const std::map<std::string, std::string>& variables = {});

// Returns the reason among podman's words, in one line: its last "Error: …", and before that what
// the step of a build that failed said last.
std::string ErrorIn(absl::string_view words);

// Returns this process's limits as options of `podman run` and `build`: a container may not have
// more, and podman's defaults are more than many users may give.
std::vector<std::string> LimitOptions();

}  // namespace tutti::container
