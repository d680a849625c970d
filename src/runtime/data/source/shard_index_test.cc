#include "runtime/data/source/shard_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::data {
namespace {

using ::testing::HasSubstr;

TEST(ShardIndex, IsReadAsItWasWritten) {
  const ShardIndex index{Annotations::kBoxes, 7, {{"train-000000.tar", 100, 3}, {"b.tar", 0, 0}}};
  const auto read = ParseShardIndex(ToText(index));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, index);
}

TEST(ShardIndex, NamesTheLineThatIsNone) {
  const std::string head = "tutti-index 1\n";
  for (const auto& [text, why] : {std::pair<std::string, std::string>("", "line 1"),
                                  {"shard a.tar 1 1\n", "line 1"},
                                  {head, "no shard"},
                                  {head + "shard a.tar 1 1\nshard ../b.tar 1 1\n", "line 3"},
                                  {head + "shard a.tar -1 1\n", "line 2"},
                                  {head + "shard a.tar 1\n", "line 2"},
                                  {head + "annotations songs\n", "line 2"},
                                  {head + "most_boxes 0\n", "line 2"}}) {
    const auto index = ParseShardIndex(text);
    EXPECT_TRUE(absl::IsInvalidArgument(index.status())) << text;
    EXPECT_THAT(std::string(index.status().message()), HasSubstr(why));
  }
}

}  // namespace
}  // namespace tutti::data
