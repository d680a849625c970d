// Goes once through a dataset: what can be read, and how large its images are.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/decode/image_decoder.h"

namespace tutti::data {

struct SurveyOptions {
  // False: headers alone are read, which finds files that are no images, but not those that are
  // damaged further on.
  bool decode = true;
  int threads = 1;
};

struct UnreadableImage {
  int64_t index;
  absl::Status status;  // names the image
};

struct Survey {
  int64_t images = 0;
  // Images by label; of readable ones, those with the class in their masks, or objects.
  std::vector<int64_t> of_class;
  std::vector<int64_t> widths, heights, bytes;   // of the readable ones, sorted
  std::map<absl::string_view, int64_t> of_kind;  // the readable ones, by ImageCodec::name
  std::vector<UnreadableImage> unreadable;       // by index
  // Over all pixels, in 0 to 1, by colour; 0 unless decoded.
  std::array<double, 3> mean = {}, stddev = {};
};

Survey SurveyOf(const Dataset& dataset, const SurveyOptions& options);

}  // namespace tutti::data
