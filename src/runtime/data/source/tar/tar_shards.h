// Opens a shard that has come alone. A split's are opened together: OpenTarShards in dataset.h,
// which describes them.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"

namespace tutti::data {

// Opens one shard as a set of its own, of those classes. Errors are those of OpenTarShards, and
// name it.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenTarShard(const std::filesystem::path& file,
                                                            std::vector<std::string> classes);

}  // namespace tutti::data
