#include "runtime/data/source/tar/index_shards.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/data/annotation/annotation.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/shard_files.h"
#include "runtime/data/source/tar/tar_shards.h"

namespace tutti::data {

namespace fs = std::filesystem;

absl::StatusOr<ShardIndex> IndexShards(const fs::path& folder, absl::string_view split) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<fs::path> files, ListShards(folder, split));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<std::string> classes,
                         ReadClasses(folder / "classes.txt"));
  ShardIndex index;
  int64_t samples = 0;
  for (const fs::path& file : files) {
    TUTTI_ASSIGN_OR_RETURN(const auto shard, OpenTarShard(file, classes));
    std::error_code error;
    const auto bytes = static_cast<int64_t>(fs::file_size(file, error));
    if (error) return base::ErrnoStatus(file.string(), error.value());
    if (samples == 0) index.annotations = shard->annotations();
    if (shard->size() > 0 && shard->annotations() != index.annotations) {
      return absl::InvalidArgumentError(
          absl::StrCat(file.string(), ": has ", NameOf(shard->annotations()),
                       ", where the shards before it have ", NameOf(index.annotations)));
    }
    index.most_boxes = std::max(index.most_boxes, shard->most_boxes());
    index.shards.push_back({file.filename().string(), bytes, shard->size()});
    samples += shard->size();
  }
  if (samples == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder.string(), ": the shards of split \"", split, "\" hold no sample"));
  }
  return index;
}

}  // namespace tutti::data
