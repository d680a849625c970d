#include "platform/service/results/file_digests.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file.h"
#include "base/hash.h"

namespace tutti::service {
namespace {

class FileDigestsTest : public ::testing::Test {
 protected:
  void Put(const std::string& text) { std::ofstream(file_) << text; }
  base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "input";
  std::atomic<bool> stop_ = false;
  FileDigests digests_{&stop_};
};

TEST_F(FileDigestsTest, IsTheFilesHashAlsoOnceItHasChanged) {
  for (const char* text : {"one", "two"}) {
    Put(text);
    EXPECT_EQ(*digests_.Of(file_), base::Hex(base::Sha256Of(text)));
    EXPECT_EQ(*digests_.Of(file_), base::Hex(base::Sha256Of(text)));
  }
}

TEST_F(FileDigestsTest, FailsWithoutAFile) { EXPECT_FALSE(digests_.Of(file_).ok()); }

TEST_F(FileDigestsTest, EndsWhenItIsToldToHoweverLargeTheFileIs) {
  Put("");
  std::filesystem::resize_file(file_, uint64_t{50} << 30);  // sparse
  stop_ = true;
  EXPECT_TRUE(absl::IsCancelled(digests_.Of(file_).status()));
}

}  // namespace
}  // namespace tutti::service
