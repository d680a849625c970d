#include "runtime/data/source/shard_files.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/closest.h"

namespace tutti::data {
namespace fs = std::filesystem;
namespace {

struct ShardName {
  std::string split;
  uint32_t number;
};

std::optional<ShardName> ParseShardName(absl::string_view name) {
  if (!absl::ConsumeSuffix(&name, ".tgz")) {
    if (!absl::ConsumeSuffix(&name, ".zst")) absl::ConsumeSuffix(&name, ".gz");
    if (!absl::ConsumeSuffix(&name, ".tar")) return std::nullopt;
  }
  const size_t dash = name.rfind('-');
  if (dash == absl::string_view::npos || dash == 0) return std::nullopt;
  const absl::string_view digits = name.substr(dash + 1);
  ShardName shard{std::string(name.substr(0, dash)), 0};
  if (digits.size() != 6 || digits.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(digits, &shard.number)) {
    return std::nullopt;
  }
  return shard;
}

absl::Status NoSuchSplit(const fs::path& folder, absl::string_view split,
                         const std::set<std::string>& splits) {
  if (splits.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder.string(), ": holds no shards (", split, "-000000.tar, …)"));
  }
  const std::vector<absl::string_view> names(splits.begin(), splits.end());
  return absl::NotFoundError(absl::StrCat(folder.string(), ": no split \"", split, "\"; there is ",
                                          absl::StrJoin(splits, ", "),
                                          base::DidYouMean(split, names)));
}

}  // namespace

bool IsShardName(absl::string_view name) { return ParseShardName(name).has_value(); }

absl::StatusOr<std::vector<fs::path>> ListShards(const fs::path& folder, absl::string_view split) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) return base::ErrnoStatus(absl::StrCat("data folder ", folder.string()), error.value());
  std::map<uint32_t, fs::path> shards;
  std::set<std::string> splits;
  for (; entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path& path = entries->path();
    const std::optional<ShardName> shard = ParseShardName(path.filename().string());
    if (!shard) continue;
    splits.insert(shard->split);
    if (shard->split != split) continue;
    const auto [other, inserted] = shards.emplace(shard->number, path);
    if (!inserted) {
      return absl::FailedPreconditionError(
          absl::StrCat(path.string(), ": ", other->second.filename().string(),
                       " has the same number; remove one of them"));
    }
  }
  if (error) return base::ErrnoStatus(absl::StrCat("data folder ", folder.string()), error.value());
  if (shards.empty()) return NoSuchSplit(folder, split, splits);
  std::vector<fs::path> files;
  for (const auto& [number, path] : shards) {
    if (number != files.size()) {
      return absl::FailedPreconditionError(
          absl::StrCat(folder.string(), ": shard ", files.size(), " of split \"", split,
                       "\" is missing, the next is ", path.filename().string()));
    }
    files.push_back(path);
  }
  return files;
}

}  // namespace tutti::data
