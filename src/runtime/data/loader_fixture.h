// LoaderTest gives tests of the loader CIFAR's recipe, and batches that are kept.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/test_patience.h"
#include "runtime/data/loader.h"

namespace tutti::data {

class LoaderTest : public testing::Test {
 protected:
  static constexpr size_t kValues = 32 * 32 * 3;

  static base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(30))); }

  static LoaderOptions CifarOptions() {
    LoaderOptions options{.global_batch = 16, .seed = 3};
    options.augmentation = {.pad_crop = 4,
                            .flip = Flip::kByChance,
                            .mean = {0.4914f, 0.4822f, 0.4465f},
                            .stddev = {0.2470f, 0.2435f, 0.2616f}};
    return options;
  }

  // A batch that outlives the loader's memory.
  struct Copy {
    int64_t epoch, step;
    std::vector<int64_t> samples, labels;
    std::vector<float> pixels;
    bool operator==(const Copy&) const = default;
  };

  static Copy CopyOf(const Batch& batch) {
    const float* pixels = static_cast<const float*>(batch.pixels);
    return {batch.epoch,
            batch.step,
            {batch.samples, batch.samples + batch.count},
            {batch.labels, batch.labels + batch.count},
            {pixels, pixels + static_cast<size_t>(batch.count) * kValues}};
  }

  static Copy NextOf(Loader& loader) {
    const auto batch = loader.Next(Soon());
    EXPECT_TRUE(batch.ok()) << batch.status();
    return batch.ok() ? CopyOf(*batch) : Copy{};
  }

  static std::unique_ptr<Loader> Make(std::shared_ptr<const Dataset> dataset,
                                      const LoaderOptions& options) {
    auto loader = MakeLoader(std::move(dataset), options);
    EXPECT_TRUE(loader.ok()) << loader.status();
    return *std::move(loader);
  }

  static std::vector<Copy> Take(Loader& loader, int count) {
    std::vector<Copy> batches;
    for (int i = 0; i < count; ++i) batches.push_back(NextOf(loader));
    return batches;
  }
};

}  // namespace tutti::data
