#include "http/file_batch.h"

#include <gtest/gtest.h>

namespace tutti::http {
namespace {

TEST(FileBatchTest, GivesBackWhatWasPutIn) {
  std::string body;
  EXPECT_TRUE(FilesOfBatch(body)->empty());
  const std::string name("outputs/\xff 1 2\n\0x", 16), bytes("3 4\n\0", 5);
  AppendToBatch("outputs/a", "", body);
  AppendToBatch(name, bytes, body);
  const auto files = FilesOfBatch(body).value();
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].name, "outputs/a");
  EXPECT_EQ(files[0].bytes, "");
  EXPECT_EQ(files[1].name, name);
  EXPECT_EQ(files[1].bytes, bytes);
}

TEST(FileBatchTest, AnyOtherTextIsNone) {
  std::string body;
  AppendToBatch("outputs/a", "0123456789", body);
  for (size_t cut = 1; cut < body.size(); ++cut) {
    EXPECT_TRUE(absl::IsInvalidArgument(FilesOfBatch(body.substr(0, cut)).status())) << cut;
  }
  for (const char* wrong : {"x", "1 1", "-1 1\na", "1 -1\na", "1 18446744073709551615\na",
                            "18446744073709551615 1\na", "99999999999999999999999 1\na", "\n"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(FilesOfBatch(wrong).status())) << wrong;
  }
  std::string many;
  for (size_t i = 0; i <= kMostOfABatch; ++i) AppendToBatch("a", "", many);
  EXPECT_TRUE(absl::IsInvalidArgument(FilesOfBatch(many).status()));
}

}  // namespace
}  // namespace tutti::http
