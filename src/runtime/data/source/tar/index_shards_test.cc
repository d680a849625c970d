#include "runtime/data/source/tar/index_shards.h"

#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "runtime/data/source/tar/tar_fake.h"

namespace tutti::data {
namespace {

TEST(IndexShards, CountsTheImagesOfShardsThatLieThere) {
  const base::TemporaryDirectory folder;
  const auto write = [&](const char* name, const std::string& text) {
    ASSERT_TRUE(base::WriteFileAtomic(folder.path() / name, text).ok());
  };
  write("classes.txt", "cat\n");
  const std::string two = TarBuilder()
                              .Add("0.jpg", "A")
                              .Add("0.boxes.txt", "0 0.1 0.1 0.2 0.2\n0 0.3 0.3 0.4 0.4\n")
                              .Add("1.jpg", "B")
                              .Add("1.boxes.txt", "")
                              .Finish();
  write("train-000000.tar", two);
  write("train-000001.tar.zst", Compress(two));
  const auto index = IndexShards(folder.path(), "train");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->annotations, Annotations::kBoxes);
  EXPECT_EQ(index->most_boxes, 2);
  ASSERT_EQ(index->shards.size(), 2u);
  EXPECT_EQ(index->shards[0],
            (ShardIndex::Shard{"train-000000.tar", static_cast<int64_t>(two.size()), 2}));
  EXPECT_EQ(index->shards[1].samples, 2);
  ASSERT_TRUE(WriteShardIndex(folder.path(), "train", *index).ok());
  EXPECT_EQ(base::ReadFile(folder.path() / "train-index.txt").value_or(""), ToText(*index));
}

TEST(IndexShards, AShardWithoutASampleChangesNothingOfTheOthers) {
  const base::TemporaryDirectory folder;
  const auto write = [&](const char* name, const std::string& text) {
    ASSERT_TRUE(base::WriteFileAtomic(folder.path() / name, text).ok());
  };
  write("classes.txt", "cat\n");
  const std::string empty = TarBuilder().Finish();
  write("train-000000.tar", empty);
  EXPECT_EQ(IndexShards(folder.path(), "train").status().message(),
            folder.path().string() + ": the shards of split \"train\" hold no sample");
  write("train-000001.tar", TarBuilder().Add("0.jpg", "A").Add("0.boxes.txt", "").Finish());
  write("train-000002.tar", empty);
  const auto index = IndexShards(folder.path(), "train");
  ASSERT_TRUE(index.ok()) << index.status();
  EXPECT_EQ(index->annotations, Annotations::kBoxes);
  EXPECT_EQ(
      RemarksOf(*index),
      (std::vector<std::string>{"2 files hold no sample: train-000000.tar, train-000002.tar"}));
}

}  // namespace
}  // namespace tutti::data
