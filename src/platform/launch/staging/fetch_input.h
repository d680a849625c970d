// Fetches inputs that lie behind http or https: each file once, to the node's folder, where the
// jobs that name it share it as long as the server says that it is the same. Thread-safe.
//
//   data/KEY/NAME   the file; KEY is the hash of its address and of what its server says of it; the
//                   folder was last changed when a job last took it, for the service's retention
//   data/KEY.lock   held by who fetches it
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "spec/types/job.h"

namespace tutti::launch {

// Fetches the input if need be and returns where it lies below `data`. What cannot be had is named
// with its address and the command that serves it from a copy; Cancelled once `cancelled` is set.
absl::StatusOr<std::filesystem::path> FetchInput(const std::string& name, const spec::Input& input,
                                                 const std::filesystem::path& data,
                                                 const std::atomic<bool>& cancelled);

}  // namespace tutti::launch
