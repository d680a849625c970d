// Reads of a tf.train.Example what the ImageNet scripts of TensorFlow write into it: the encoded
// image, its label, its name and that of its class. Other features are passed over.
//
// An Example is a protocol buffer: Example{features=1}, Features{map<string, Feature> feature=1},
// Feature{one of bytes_list=1, float_list=2, int64_list=3}, each list{value=1}. The wire format is
// read directly and in place; bytes that are none give an error.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

struct ImageExample {
  absl::string_view image;       // image/encoded
  std::optional<int64_t> label;  // image/class/label
  absl::string_view class_name;  // image/class/synset, else image/class/text
  absl::string_view file_name;   // image/filename
};

// Parses an Example; the views are of `message`. DataLoss: not an Example; InvalidArgument: without
// an image or label.
absl::StatusOr<ImageExample> ParseImageExample(absl::string_view message);

}  // namespace tutti::data
