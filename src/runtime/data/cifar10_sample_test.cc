// The sample that tutti ships, read as the example reads it.
// Covers: source/shard_files.cc.
#include <gtest/gtest.h>

#include <set>

#include "base/test_patience.h"
#include "runtime/data/dataset.h"
#include "runtime/data/loader.h"

namespace tutti::data {
namespace {

TEST(Cifar10Sample, IsBalancedAndEveryImageDecodes) {
  for (const auto& [split, per_class] : {std::pair{"train", 500}, std::pair{"test", 100}}) {
    const auto dataset = OpenTarShards(TUTTI_CIFAR10_SAMPLE, split);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    ASSERT_EQ((*dataset)->size(), 10 * per_class);
    ASSERT_EQ((*dataset)->classes().size(), 10u);
    EXPECT_EQ((*dataset)->classes()[3], "cat");
    LoaderOptions options{.global_batch = 100};
    options.shuffle = options.drop_last = false;
    const auto loader = MakeLoader(*dataset, options);
    ASSERT_TRUE(loader.ok()) << loader.status();
    std::vector<int> counts(10);
    for (int64_t step = 0; step < (*loader)->steps_per_epoch(); ++step) {
      const auto batch = (*loader)->Next(base::Deadline::After(base::Patient(absl::Seconds(60))));
      ASSERT_TRUE(batch.ok()) << batch.status();
      for (int64_t i = 0; i < batch->count; ++i) ++counts.at(static_cast<size_t>(batch->labels[i]));
    }
    EXPECT_EQ(counts, std::vector<int>(10, per_class));
  }
}

// Shards are interleaved over the classes, so that any part of one is balanced too.
TEST(Cifar10Sample, ClassesTakeTurns) {
  const auto dataset = OpenTarShards(TUTTI_CIFAR10_SAMPLE, "train");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  for (int64_t i = 0; i < (*dataset)->size(); ++i) ASSERT_EQ((*dataset)->label(i), i % 10);
  EXPECT_EQ((*dataset)->Describe(3), "train-000000.tar.zst:cat/0000.jpg");
}

}  // namespace
}  // namespace tutti::data
