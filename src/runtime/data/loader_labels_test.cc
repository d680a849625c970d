// Loaders of labels alone. Covers: prefetch/make_loader.cc, prefetch/prefetch_loader.cc,
// prefetch/slot.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/data/dataset_fake.h"
#include "runtime/data/loader.h"
#include "runtime/data/loader_fixture.h"

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

// Has the size and labels of MakeFakeDataset; to read an image, or to say that one will be read, is
// a failure.
class UnreadImages final : public Dataset {
 public:
  UnreadImages(int count, int classes, Annotations annotations = Annotations::kLabels)
      : count_(count), classes_(static_cast<size_t>(classes)), annotations_(annotations) {}

  int64_t size() const override { return count_; }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override {
    return index % static_cast<int64_t>(classes_.size());
  }
  Annotations annotations() const override { return annotations_; }
  absl::StatusOr<absl::string_view> Encoded(int64_t index, std::string&) const override {
    ADD_FAILURE() << "image " << index << " was read";
    return absl::DataLossError("no image");
  }
  std::string Describe(int64_t index) const override { return absl::StrCat("unread:", index); }
  void WillNeed(int64_t index) const override {
    ADD_FAILURE() << "image " << index << " is to be read ahead";
  }

 private:
  int64_t count_;
  std::vector<std::string> classes_;
  Annotations annotations_;
};

// What a batch has beside its pixels.
struct BesidePixels {
  int64_t epoch, step;
  std::vector<int64_t> samples, labels;
  float own_share;
  bool operator==(const BesidePixels&) const = default;
};

class LabelsOnlyTest : public LoaderTest {
 protected:
  static std::vector<BesidePixels> TakeBesidePixels(Loader& loader, int count, bool has_pixels) {
    std::vector<BesidePixels> batches;
    for (int i = 0; i < count; ++i) {
      const auto batch = loader.Next(Soon());
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) return batches;
      EXPECT_EQ(batch->pixels != nullptr, has_pixels);
      EXPECT_EQ(batch->masks, nullptr);
      EXPECT_EQ(batch->boxes, nullptr);
      batches.push_back({batch->epoch,
                         batch->step,
                         {batch->samples, batch->samples + batch->count},
                         {batch->labels, batch->labels + batch->count},
                         batch->own_share});
    }
    return batches;
  }

  // Over ends of epochs, to the last steps, which may be short or empty, and after a Seek.
  static void ExpectBatchesOfALoaderWithPixels(LoaderOptions options) {
    const auto with = Make(MakeFakeDataset(50, 10), options);
    options.labels_only = true;
    const auto without = Make(std::make_shared<UnreadImages>(50, 10), options);
    ASSERT_EQ(without->steps_per_epoch(), with->steps_per_epoch());
    const auto expected = TakeBesidePixels(*with, 12, /*has_pixels=*/true);
    ASSERT_EQ(TakeBesidePixels(*without, 12, /*has_pixels=*/false), expected);
    EXPECT_EQ(std::any_of(expected.begin(), expected.end(),
                          [](const BesidePixels& batch) { return batch.own_share < 1; }),
              options.mixing.any());
    for (const int at : {7, 0, 11, 3}) {
      without->Seek(at / with->steps_per_epoch(), at % with->steps_per_epoch());
      EXPECT_EQ(TakeBesidePixels(*without, 1, /*has_pixels=*/false).at(0),
                expected[static_cast<size_t>(at)]);
    }
    EXPECT_EQ(without->unreadable(), 0);
  }
};

TEST_F(LabelsOnlyTest, GivesTheBatchesOfALoaderWithPixels) {
  for (const Mixing& mixing : {Mixing{}, Mixing{.mixup = 0.5, .cutmix = 1}}) {
    for (const bool drop_last : {true, false}) {
      for (const int threads : {0, 2}) {
        LoaderOptions options = CifarOptions();
        options.mixing = mixing;
        options.plain_from = 2;
        options.drop_last = drop_last;
        options.threads = threads;
        options.world_size = 3;
        for (options.rank = 0; options.rank < 3; ++options.rank) {
          SCOPED_TRACE(testing::Message() << "mixed " << mixing.any() << ", drop_last " << drop_last
                                          << ", threads " << threads << ", rank " << options.rank);
          ExpectBatchesOfALoaderWithPixels(options);
        }
      }
    }
  }
}

TEST_F(LabelsOnlyTest, HasTheLabelsOfDamagedImages) {
  std::vector<FakeDataset::Sample> samples;
  for (int i = 0; i < 12; ++i) samples.push_back({"not at all", i});
  const auto dataset = std::make_shared<FakeDataset>(std::move(samples), 12);
  LoaderOptions options = CifarOptions();
  options.global_batch = 4;
  options.shuffle = false;
  options.labels_only = true;
  const auto batches = TakeBesidePixels(*Make(dataset, options), 3, /*has_pixels=*/false);
  ASSERT_EQ(batches.size(), 3u);
  for (int64_t step = 0; step < 3; ++step) {
    EXPECT_THAT(batches[static_cast<size_t>(step)].labels,
                testing::ElementsAre(4 * step, 4 * step + 1, 4 * step + 2, 4 * step + 3));
  }
}

TEST_F(LabelsOnlyTest, TakesNoMemoryForPixels) {
  size_t taken = 0;
  LoaderOptions options = CifarOptions();
  options.labels_only = true;
  options.threads = 1;
  options.prefetch = 3;
  options.memory = [&](size_t bytes) {
    taken += bytes;
    return std::shared_ptr<std::byte>(
        static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), std::free);
  };
  const auto loader = Make(std::make_shared<UnreadImages>(50, 10), options);
  EXPECT_EQ(taken, (1 + 3) * 16 * sizeof(int64_t)) << "the labels of each batch";
}

TEST_F(LabelsOnlyTest, RefusesWhatLabelsAloneCannotBe) {
  LoaderOptions options = CifarOptions();
  options.labels_only = true;
  for (const Annotations annotations : {Annotations::kMasks, Annotations::kBoxes}) {
    const absl::Status status =
        MakeLoader(std::make_shared<UnreadImages>(50, 10, annotations), options).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("labels_only is for images with labels"));
  }
  options.max_unreadable = 10;
  const absl::Status status = MakeLoader(std::make_shared<UnreadImages>(50, 10), options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("max_unreadable is 10; with labels_only"));
}

}  // namespace
}  // namespace tutti::data
