#include "platform/storage/objects/file_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "platform/storage/storage_fault.h"

namespace tutti::storage {
namespace {

using ::testing::ElementsAre;

TEST(ReadBlocks, GivesAllOfAFileInBlocksOfAtMostThatSize) {
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "file", "abcdefgh").ok());
  std::vector<std::string> blocks;
  ASSERT_TRUE(ReadBlocks(folder.path() / "file", 3, [&](absl::string_view block) {
                blocks.emplace_back(block);
                return absl::OkStatus();
              }).ok());
  EXPECT_THAT(blocks, ElementsAre("abc", "def", "gh"));
}

TEST(ReadBlocks, EndsWithTheErrorOfWhoTakesThem) {
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::WriteFileAtomic(folder.path() / "file", "abcdefgh").ok());
  int taken = 0;
  const absl::Status status = ReadBlocks(folder.path() / "file", 3, [&](absl::string_view) {
    ++taken;
    return absl::AbortedError("enough");
  });
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(taken, 1);
}

TEST(ReadBlocks, SaysThatTheDiskIsAtFault) {
  const base::TemporaryDirectory folder;
  const absl::Status status =
      ReadBlocks(folder.path() / "none", 3, [](absl::string_view) { return absl::OkStatus(); });
  EXPECT_EQ(SourceOf(status), FaultSource::kDisk) << status;
}

}  // namespace
}  // namespace tutti::storage
