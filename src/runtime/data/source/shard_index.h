// ShardIndex says what the shards of a split hold, in a small file beside them, <split>-index.txt,
// so that a set in a store is known before its shards are there: docs/formats/data.md. Pure
// functions but for WriteShardIndex; tar/index_shards.h reads shards.
//
//   tutti-index 1
//   annotations labels
//   most_boxes 1
//   shard train-000000.tar 134220800 1250
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/dataset.h"

namespace tutti::data {

struct ShardIndex {
  struct Shard {
    std::string name;
    int64_t bytes = 0, samples = 0;
    bool operator==(const Shard&) const = default;
  };
  Annotations annotations = Annotations::kLabels;
  int64_t most_boxes = 1;
  std::vector<Shard> shards;  // in the order of their numbers
  bool operator==(const ShardIndex&) const = default;
};

// Returns "train-index.txt".
std::string ShardIndexName(absl::string_view split);
std::string ToText(const ShardIndex& index);
// InvalidArgument names the line.
absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text);

// Returns what Dataset::Remarks says of it: which shards have no sample.
std::vector<std::string> RemarksOf(const ShardIndex& index);

absl::Status WriteShardIndex(const std::filesystem::path& folder, absl::string_view split,
                             const ShardIndex& index);

}  // namespace tutti::data
