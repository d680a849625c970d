// Finds and runs the program podman. It finds its storage, registries and credentials as it does
// for the user (containers.conf, storage.conf, registries.conf, `podman login`); tutti has no
// settings of its own for it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/process/command.h"

namespace tutti::container {

// Returns podman's path. NotFound, with the remedy, if this machine has none.
absl::StatusOr<std::string> FindPodman();

// Returns what `podman ARGUMENTS` wrote to standard output, without the newline at its end. Both
// outputs go to files beside `log`; `variables` go over its environment. FailedPrecondition:
// ErrorIn of what it said; Cancelled; the disk's error where that took no more of its words.
absl::StatusOr<std::string> RunPodman(const std::vector<std::string>& arguments,
                                      const std::filesystem::path& log,
                                      const std::atomic<bool>& cancelled,
                                      const std::map<std::string, std::string>& variables = {});

// Runs `podman ARGUMENTS` with its outputs in memory, up to `most` bytes: on a full disk too.
// NotFound like FindPodman, and the errors of base::RunCommand.
absl::StatusOr<base::CommandResult> AskPodman(std::vector<std::string> arguments,
                                              absl::Duration patience,
                                              const std::atomic<bool>& cancelled,
                                              size_t most = base::kMostCommandOutput);

// Returns the reason among podman's words, in one line: its last "Error: …", and before that what
// the step of a build that failed said last.
std::string ErrorIn(absl::string_view words);

// Returns what podman says of an image in that format of Go's; NotFound if this node does not have
// it. Its words are kept in memory, as a job's disk may be full.
absl::StatusOr<std::string> InspectImage(const std::string& name, const std::string& format,
                                         const std::atomic<bool>& cancelled);
// Return an image's id, NotFound if this node does not have it, and its size in bytes with all of
// its layers, 0 if that is not known.
absl::StatusOr<std::string> LookUpImage(const std::string& name,
                                        const std::atomic<bool>& cancelled);
uint64_t SizeOfImage(const std::string& id, const std::atomic<bool>& cancelled);

// Returns this process's limits as options of `podman run` and `build`: a container may not have
// more, and podman's defaults are more than many users may give.
std::vector<std::string> LimitOptions();

}  // namespace tutti::container
