// Packs a dataset of any format into tar shards, which are read in few large pieces and copied as
// few files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"

namespace tutti::data {

struct PackOptions {
  uint64_t shard_bytes = uint64_t{128} << 20;  // about; a shard ends with the sample that passes it
  bool compress = false;                       // zstd: for small images, see shard_bytes.h
  int resize = 0;    // > 0: images whose shorter side is longer are made this small
  int quality = 90;  // of JPEGs that are made smaller
  // JPEGs are rewritten, without loss, so that crops of them are decoded without what lies before
  // (jpeg_pieces.h); else what is not made smaller stays as it is, to the byte.
  bool fast_crops = false;
  std::optional<uint64_t> shuffle;  // a seed: samples in the order of its permutation
  int64_t max_unreadable = 0;       // that are left out and named, before it is an error
  int threads = 1;
};

struct Packed {
  int64_t samples = 0, shards = 0, resized = 0;
  uint64_t bytes = 0;  // of the shards as they lie
  std::vector<std::string> left_out;
};

// Writes <folder>/<split>-NNNNNN.tar, classes.txt and the split's index (source/shard_index.h).
// What is there when it fails does not open as a dataset: shard 0 comes last of the shards.
// AlreadyExists: shards of this split are there; FailedPrecondition: classes.txt is there and names
// other classes; the error of an image one too many that is unreadable; errors of writing.
absl::StatusOr<Packed> Pack(const Dataset& dataset, const std::filesystem::path& folder,
                            absl::string_view split, const PackOptions& options);

}  // namespace tutti::data
