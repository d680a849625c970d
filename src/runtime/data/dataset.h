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
  // A hint that Encoded(index) will be read soon; starts the read-ahead and returns at once.
  virtual void WillNeed(int64_t index) const {}
};

// Tar shards in the WebDataset layout: consecutive members that share their path up to the first
// dot of its last component are one sample; `.jpg` or `.jpeg` is the image, `.cls` its class as a
// decimal number; other members are passed over.
//
// `folder` holds <split>-NNNNNN.tar, numbered from 0 without a gap, and classes.txt, one class name
// a line. Shards may be compressed (<split>-NNNNNN.tar.zst): these are unpacked into memory, plain
// ones are mapped and must not change while the dataset is open.
//
// Opening reads every header and label, but no image. NotFound: no such folder, split or
// classes.txt; DataLoss: a shard is cut short or is no tar archive (names shard and offset);
// InvalidArgument: a sample without image or label, a label that is no class (names the member).
absl::StatusOr<std::shared_ptr<const Dataset>> OpenTarShards(const std::filesystem::path& folder,
                                                             absl::string_view split);

}  // namespace tutti::data
