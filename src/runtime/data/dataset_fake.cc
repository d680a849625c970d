#include "runtime/data/dataset_fake.h"

#include "absl/strings/str_cat.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"

namespace tutti::data {

FakeDataset::FakeDataset(std::vector<Sample> samples, int classes) : samples_(std::move(samples)) {
  for (int i = 0; i < classes; ++i) classes_.push_back(absl::StrCat("class", i));
}

absl::StatusOr<absl::string_view> FakeDataset::Encoded(int64_t index, std::string&) const {
  return absl::string_view(at(index).encoded);
}

std::string FakeDataset::Describe(int64_t index) const { return absl::StrCat("fake:", index); }

std::shared_ptr<const Dataset> MakeFakeDataset(int count, int classes, int width, int height) {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < count; ++i) {
    samples.push_back({EncodePattern({.width = width, .height = height}, i), i % classes});
  }
  return std::make_shared<FakeDataset>(std::move(samples), classes);
}

}  // namespace tutti::data
