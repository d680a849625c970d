// Names what the programs of one job that serve its streamed inputs are for: what the inputs'
// places have now, and by which credentials they are read. Jobs of a node whose names are equal
// share the programs; others, whose list is another or whose keys may do other things, have their
// own.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "platform/launch/data/fetch_place.h"
#include "platform/storage/storage_request.h"

namespace tutti::launch {

// Returns such a name of one place: hexadecimal digits, of which no credential can be found. Lists
// the place once, by names, sizes and times, into the file `list`, of which DataStream::Open makes
// use; blocks. `request`: with its credentials; its operation does not count. Errors are those of
// storage::RunStorage. Thread-safe.
absl::StatusOr<std::string> StreamNameOf(storage::StorageRequest request,
                                         const std::filesystem::path& list,
                                         const StorageFunction& run,
                                         const std::atomic<bool>& cancelled);

// Returns the name of several together; "" of none.
std::string StreamNameOfAll(const std::vector<std::string>& names);

}  // namespace tutti::launch
