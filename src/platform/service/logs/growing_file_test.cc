#include "platform/service/logs/growing_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::service {
namespace {

class GrowingFileTest : public testing::Test {
 protected:
  void Write(absl::string_view text) const { std::ofstream(path_, std::ios::app) << text; }
  static std::string Read(GrowingFile& file, bool to_the_end = false) {
    std::string all;
    const auto any =
        file.ReadOn(to_the_end, [&](absl::string_view lines) { absl::StrAppend(&all, lines); });
    EXPECT_TRUE(any.ok()) << any.status();
    return all;
  }

  const base::TemporaryDirectory folder_;
  const std::filesystem::path path_ = folder_.path() / "lines";
};

TEST_F(GrowingFileTest, LinesAreHandedOutOnceTheyAreWhole) {
  GrowingFile file(path_);
  EXPECT_EQ(Read(file), "");
  Write("one\ntw");
  EXPECT_EQ(Read(file), "one\n");
  EXPECT_EQ(Read(file), "");
  Write("o\nthree");
  EXPECT_EQ(Read(file), "two\n");
  EXPECT_EQ(Read(file, /*to_the_end=*/true), "three\n");
}

TEST_F(GrowingFileTest, LinesThatAreTooLongArePassedOver) {
  GrowingFile file(path_, /*longest_line=*/8);
  Write("0123456789");
  EXPECT_EQ(Read(file), "");
  Write("abc\nshort\n");
  EXPECT_EQ(Read(file), "short\n");
}

TEST_F(GrowingFileTest, ItBeginsWithAWholeLine) {
  Write("first\nsecond\nthird\n");
  GrowingFile file(path_);
  file.BeginAtTheLast(10);
  EXPECT_EQ(Read(file), "third\n");
  GrowingFile all(path_);
  all.BeginAtTheLast(1000);
  EXPECT_EQ(Read(all), "first\nsecond\nthird\n");
}

TEST_F(GrowingFileTest, AFileThatCannotBeReadIsAnError) {
  GrowingFile file(folder_.path());
  EXPECT_FALSE(file.ReadOn(false, [](absl::string_view) {}).ok());
}

}  // namespace
}  // namespace tutti::service
