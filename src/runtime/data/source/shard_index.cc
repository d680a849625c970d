#include "runtime/data/source/shard_index.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/text/utf8.h"
#include "runtime/data/annotation/annotation.h"
#include "runtime/data/source/left_out.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kIndexHead = "tutti-index 1";
constexpr int64_t kMostBoxesOfIndex = 1 << 20, kMostSamples = int64_t{1} << 40;

bool ParseAnnotations(absl::string_view name, Annotations& annotations) {
  for (const Annotations known : {Annotations::kLabels, Annotations::kMasks, Annotations::kBoxes}) {
    if (NameOf(known) != name) continue;
    annotations = known;
    return true;
  }
  return false;
}

bool ParseCount(absl::string_view text, int64_t most, int64_t& count) {
  return absl::SimpleAtoi(text, &count) && count >= 0 && count <= most;
}

// A name in the folder itself.
bool IsName(absl::string_view name) {
  return !name.empty() && name.find('/') == absl::string_view::npos && name[0] != '.';
}

bool ParseLine(absl::string_view line, ShardIndex& index) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() == 2 && words[0] == "annotations") {
    return ParseAnnotations(words[1], index.annotations);
  }
  if (words.size() == 2 && words[0] == "most_boxes") {
    return ParseCount(words[1], kMostBoxesOfIndex, index.most_boxes) && index.most_boxes > 0;
  }
  if (words.size() != 4 || words[0] != "shard" || !IsName(words[1])) return false;
  ShardIndex::Shard shard{std::string(words[1])};
  if (!ParseCount(words[2], INT64_MAX, shard.bytes) ||
      !ParseCount(words[3], kMostSamples, shard.samples)) {
    return false;
  }
  index.shards.push_back(std::move(shard));
  return true;
}

}  // namespace

std::string ShardIndexName(absl::string_view split) { return absl::StrCat(split, "-index.txt"); }

std::string ToText(const ShardIndex& index) {
  std::string text = absl::StrCat(kIndexHead, "\nannotations ", NameOf(index.annotations),
                                  "\nmost_boxes ", index.most_boxes, "\n");
  for (const ShardIndex::Shard& shard : index.shards) {
    absl::StrAppend(&text, "shard ", shard.name, " ", shard.bytes, " ", shard.samples, "\n");
  }
  return text;
}

absl::StatusOr<ShardIndex> ParseShardIndex(absl::string_view text) {
  ShardIndex index;
  int number = 0;
  for (const absl::string_view part : absl::StrSplit(text, '\n')) {
    const absl::string_view line = absl::StripSuffix(part, "\r");
    if (++number > 1 && line.empty()) continue;
    if (number == 1 ? line == kIndexHead : ParseLine(line, index)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("line ", number, " is \"", base::BoundedUtf8(line, 60), "\"; wanted is ",
                     number == 1 ? "\"tutti-index 1\"" : "\"shard NAME BYTES IMAGES\""));
  }
  if (!index.shards.empty()) return index;
  return absl::InvalidArgumentError("it names no shard");
}

std::vector<std::string> RemarksOf(const ShardIndex& index) {
  std::vector<std::string> empty;
  for (const ShardIndex::Shard& shard : index.shards) {
    if (shard.samples == 0) empty.push_back(shard.name);
  }
  return FilesWithoutSample(empty);
}

absl::Status WriteShardIndex(const fs::path& folder, absl::string_view split,
                             const ShardIndex& index) {
  return base::WriteFileAtomic(folder / ShardIndexName(split), ToText(index));
}

}  // namespace tutti::data
