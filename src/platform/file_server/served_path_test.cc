#include "platform/file_server/served_path.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace tutti::file_server {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ServedPathTest : public ::testing::Test {
 protected:
  ServedPathTest() {
    EXPECT_TRUE(base::MakeDirectories(home_ / "jobs").ok());
    EXPECT_TRUE(base::MakeDirectories(data_).ok());
  }
  std::string Refused(const fs::path& folder) const {
    const auto path = ServedPath(folder, home_);
    EXPECT_FALSE(path.ok()) << *path;
    return std::string(path.status().message());
  }

  const base::TemporaryDirectory folder_;
  const fs::path real_ = fs::canonical(folder_.path());
  const fs::path home_ = real_ / "home", data_ = real_ / "data";
};

TEST_F(ServedPathTest, IsWhereTheLinksLead) {
  fs::create_directory_symlink(data_, real_ / "link");
  EXPECT_EQ(ServedPath(data_, home_).value(), data_);
  EXPECT_EQ(ServedPath(real_ / "link", home_).value(), data_);
}

TEST_F(ServedPathTest, IsNothingOfTheServicesOwn) {
  EXPECT_THAT(Refused(home_), HasSubstr("lie in each other"));
  EXPECT_THAT(Refused(home_ / "jobs"), HasSubstr("lie in each other"));
  EXPECT_THAT(Refused(real_), HasSubstr("lie in each other"));
  fs::create_directory_symlink(home_, real_ / "link");
  EXPECT_THAT(Refused(real_ / "link"), HasSubstr("lie in each other"));
}

TEST_F(ServedPathTest, IsAFolderWithAPlainName) {
  EXPECT_THAT(Refused(real_ / "none"), HasSubstr("is no folder of this machine"));
  EXPECT_THAT(Refused("/"), HasSubstr("is the whole machine"));
  const fs::path quoted = real_ / "a\"; }";
  ASSERT_TRUE(base::MakeDirectories(quoted).ok());
  EXPECT_THAT(Refused(quoted), HasSubstr("has a quotation mark"));
  fs::create_directory_symlink(quoted, real_ / "link");
  EXPECT_THAT(Refused(real_ / "link"), HasSubstr("has a quotation mark"));
  EXPECT_FALSE(ServedPath(data_, quoted).ok());
}

}  // namespace
}  // namespace tutti::file_server
