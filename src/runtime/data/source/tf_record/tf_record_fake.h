// Builds TFRecord files in memory for tests, right ones and wrong ones.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::data {

// A tf.train.Example with the features of the ImageNet scripts, and one that nobody reads.
struct FakeExample {
  std::string image;
  int64_t label = 1;
  std::string synset, text, file_name;
  bool packed = true;  // of the label's list
};
std::string EncodeExample(const FakeExample& example);

// Returns a record with right checksums.
std::string EncodeTfRecord(absl::string_view data);

}  // namespace tutti::data
