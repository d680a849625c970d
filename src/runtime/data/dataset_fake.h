// FakeDataset is a dataset in memory, for tests of whatever reads datasets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"

namespace tutti::data {

class FakeDataset final : public Dataset {
 public:
  struct Sample {
    std::string encoded;
    int64_t label;
  };
  FakeDataset(std::vector<Sample> samples, int classes);

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override { return at(index).label; }
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string& scratch) const override;
  // Returns "fake:3".
  std::string Describe(int64_t index) const override;

 private:
  const Sample& at(int64_t index) const { return samples_.at(static_cast<size_t>(index)); }
  std::vector<Sample> samples_;
  std::vector<std::string> classes_;
};

// Makes `count` JPEGs of this size, each different, labels 0, 1, …, classes - 1, 0, …
std::shared_ptr<const Dataset> MakeFakeDataset(int count, int classes, int width = 32,
                                               int height = 32);

}  // namespace tutti::data
