// Lists the files that are the shards of a split: <split>-NNNNNN.tar, .tar.zst, .tar.gz or .tgz,
// numbered from 0.
#pragma once

#include <filesystem>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

// Returns whether it is the name of a shard, of any split.
bool IsShardName(absl::string_view name);

// Lists the shards in the order of their numbers. NotFound: no such folder, or no shard of this
// split (names the splits that there are). FailedPrecondition: a number is missing or stands there
// twice: training on a part of the data by accident is worse than an error.
absl::StatusOr<std::vector<std::filesystem::path>> ListShards(const std::filesystem::path& folder,
                                                              absl::string_view split);

}  // namespace tutti::data
