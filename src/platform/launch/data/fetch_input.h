// Fetches inputs that lie behind http or https: each file once, to the node's folder, where the
// jobs that name it share it as long as the server says that it is the same. Thread-safe.
//
//   data/KEY/NAME   the file; KEY is the hash of its address and of what its server says of it
//   data/KEY.lock   held by who fetches it
//
// All else is as cache/node_cache.h says.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "platform/launch/data/data_cache.h"
#include "spec/types/job.h"

namespace tutti::launch {

// Fetches the input if need be and returns where it lies in the cache. What cannot be had is named
// with its address and the command that serves it from a copy; Cancelled once `cancelled` is set.
// `progress` is told, as bytes come, how many of the file are there, and may be empty.
absl::StatusOr<FetchedInput> FetchInput(const std::string& name, const spec::Input& input,
                                        const DataCache& cache, const std::atomic<bool>& cancelled,
                                        const std::function<void(int64_t bytes)>& progress = {});

}  // namespace tutti::launch
