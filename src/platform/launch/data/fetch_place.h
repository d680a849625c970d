// Fetches inputs that lie in a store by the program `tutti-storage`: each once, to the node's cache
// (cache/node_cache.h), where the jobs that name it share it as long as the store has the same.
// Thread-safe.
//
//   data/KEY        what of it is kept, as fetched_home.h says; KEY is the hash of its place and of
//                   what the store says of its objects (names, sizes, times or ETags)
//   data/KEY.lock   held by who fetches it, and by its program until that has ended
//   data/places/P   the KEY that was fetched last of a place: what has not changed is taken from it
//
// Where the disk is full, or the cache would become larger than it may, what is longest unused and
// no job reads goes first.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "platform/launch/data/data_cache.h"
#include "platform/storage/storage_program.h"
#include "spec/types/job.h"

namespace tutti::launch {

// Runs storage::RunStorage, or what stands for it in tests.
using StorageFunction = std::function<absl::StatusOr<storage::StorageResult>(
    const storage::StorageRequest&, base::Deadline, const std::atomic<bool>& cancelled,
    const std::function<void(const storage::StorageProgress&)>& progress, int lock)>;

// Fetches the input, which has a place, if need be, and returns where it lies in the cache: what
// jobs can read and not write to, unless they change its modes. What one has changed all the same,
// or the disk, is left alone, and fetched again. `secrets`: values by name, as the service gave
// them. Errors name the input and what to do; Aborted if it changes in the store again and again,
// Cancelled once `cancelled` is set.
absl::StatusOr<FetchedInput> FetchPlace(const std::string& name, const spec::Input& input,
                                        const std::map<std::string, std::string>& secrets,
                                        const DataCache& cache, const std::atomic<bool>& cancelled,
                                        const StorageFunction& run = storage::RunStorage);

// Does the same of the place that a request names, whatever names it; its operation does not count.
// `what`, for the log: "input \"x\"". Errors are the program's, without advice.
absl::StatusOr<FetchedInput> FetchRequested(const std::string& what,
                                            storage::StorageRequest request, const DataCache& cache,
                                            const std::atomic<bool>& cancelled,
                                            const StorageFunction& run = storage::RunStorage);

}  // namespace tutti::launch
