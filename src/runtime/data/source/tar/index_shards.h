// Reads what the index of a split says (shard_index.h) from shards that lie here. Thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/source/shard_index.h"

namespace tutti::data {

// Reads the headers of a split's shards. Errors are those of OpenTarShards.
absl::StatusOr<ShardIndex> IndexShards(const std::filesystem::path& folder,
                                       absl::string_view split);

}  // namespace tutti::data
