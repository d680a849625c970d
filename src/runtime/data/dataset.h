// A finite, indexed set of labelled, encoded images. Immutable after opening; thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;
  virtual int64_t label(int64_t index) const = 0;
  // The encoded bytes; valid as long as the dataset.
  virtual absl::StatusOr<absl::string_view> Encoded(int64_t index) const = 0;
  // "train-000002.tar:cat/0017.jpg", for errors.
  virtual std::string Describe(int64_t index) const = 0;
};

// Tar shards in the WebDataset layout: members that share a name up to the first dot of the last
// path component are one sample; `.jpg` is the image, `.cls` its class as a decimal number.
// `folder` holds <split>-NNNNNN.tar and classes.txt, one class name a line. Opening reads every
// header and label and maps the files; DataLoss names the shard and offset where one is cut short
// or is no tar archive.
absl::StatusOr<std::shared_ptr<const Dataset>> OpenTarShards(const std::filesystem::path& folder,
                                                             absl::string_view split);

}  // namespace tutti::data
