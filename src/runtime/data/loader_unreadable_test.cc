// Covers: prefetch/prefetch_loader.cc, prefetch/slot.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/loader.h"
#include "runtime/data/loader_fixture.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

TEST_F(LoaderTest, AnUnreadableSampleIsAnErrorOfItsBatchAlone) {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < 12; ++i) samples.push_back({EncodePattern({}, i), 0});
  samples[5].encoded = "not at all";
  samples[6].encoded.resize(100);
  samples[7].encoded = "";
  const auto dataset = std::make_shared<FakeDataset>(std::move(samples), 1);
  for (const int threads : {0, 1, 4}) {
    LoaderOptions options = CifarOptions();
    options.global_batch = 4;
    options.shuffle = false;
    options.threads = threads;
    const auto loader = Make(dataset, options);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(NextOf(*loader).step, 0);
      const absl::Status status = loader->Next(Soon()).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_EQ(status.message(), absl::StrCat("epoch ", epoch + 1,
                                               ", its step 2: fake:5: not JPEG, PNG, PNM, BMP, "
                                               "TIFF or WebP (starts with 6e 6f 74 20 61 "
                                               "74 20 61)"));
      EXPECT_EQ(NextOf(*loader).step, 2);
    }
  }
}

// Samples 5 and 9 are damaged; the first epoch, in the dataset's order, in batches of four.
std::shared_ptr<const Dataset> DamagedDataset() {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < 12; ++i) samples.push_back({EncodePattern({}, i), i});
  samples[5].encoded = "not at all";
  samples[9].encoded.resize(100);
  return std::make_shared<FakeDataset>(std::move(samples), 12);
}

TEST_F(LoaderTest, UnreadableImagesAreNamedAndReplacedByTheNextUpToALimit) {
  const auto dataset = DamagedDataset();
  for (const int threads : {0, 1, 4}) {
    LoaderOptions options = CifarOptions();
    options.global_batch = 4;
    options.shuffle = false;
    options.threads = threads;
    options.max_unreadable = 2;
    std::vector<std::string> named;
    options.on_unreadable = [&](absl::string_view what) { named.emplace_back(what); };
    const auto loader = Make(dataset, options);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      NextOf(*loader);
      const Copy second = NextOf(*loader);
      EXPECT_EQ(second.samples, (std::vector<int64_t>{4, 6, 6, 7}));
      EXPECT_EQ(second.labels, second.samples);
      EXPECT_EQ(NextOf(*loader).samples, (std::vector<int64_t>{8, 10, 10, 11}));
    }
    EXPECT_EQ(loader->unreadable(), 2) << "however often they are met";
    ASSERT_EQ(named.size(), 2u);
    EXPECT_THAT(named[0], HasSubstr("fake:5: not JPEG, PNG, PNM, BMP, TIFF or WebP"));
    EXPECT_THAT(named[1], HasSubstr("fake:9: damaged JPEG"));
  }
}

TEST_F(LoaderTest, OneUnreadableImageTooManyIsAnError) {
  LoaderOptions options = CifarOptions();
  options.global_batch = 4;
  options.shuffle = false;
  options.threads = 2;
  options.max_unreadable = 1;
  const auto loader = Make(DamagedDataset(), options);
  NextOf(*loader);
  NextOf(*loader);
  const absl::Status status = loader->Next(Soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              testing::AllOf(HasSubstr("epoch 1, its step 3: fake:9: damaged JPEG"),
                             HasSubstr("1 other unreadable images were replaced")));
}

}  // namespace
}  // namespace tutti::data
