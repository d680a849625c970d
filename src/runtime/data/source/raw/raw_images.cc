#include "runtime/data/source/raw/raw_images.h"

#include "absl/strings/str_cat.h"
#include "runtime/data/decode/pnm.h"

namespace tutti::data {

absl::StatusOr<absl::string_view> RawImages::Encoded(int64_t index, std::string& scratch) const {
  scratch = PnmHeader({shape_.width, shape_.height}, shape_.channels);
  const size_t header = scratch.size(), bytes = shape_.bytes();
  const char* const from = at(index).samples;
  if (!shape_.planar) {
    scratch.append(from, bytes);
    return absl::string_view(scratch);
  }
  scratch.resize(header + bytes);
  const auto channels = static_cast<size_t>(shape_.channels);
  const size_t pixels = bytes / channels;
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < channels; ++c) {
      scratch[header + i * channels + c] = from[c * pixels + i];
    }
  }
  return absl::string_view(scratch);
}

std::string RawImages::Describe(int64_t index) const {
  return absl::StrCat(files_[at(index).file].first, ":", at(index).number);
}

uint32_t RawImages::AddFile(std::string name, ShardBytes bytes) {
  files_.emplace_back(std::move(name), std::move(bytes));
  return static_cast<uint32_t>(files_.size() - 1);
}

std::vector<std::string> NumberedClasses(int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(absl::StrCat(i));
  return names;
}

}  // namespace tutti::data
