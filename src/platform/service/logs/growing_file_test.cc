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
    const auto any = file.ReadOn(to_the_end, [&](absl::string_view lines, uint64_t /*offset*/) {
      absl::StrAppend(&all, lines);
    });
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

TEST_F(GrowingFileTest, APartIsReadByWhereItsLinesBegin) {
  GrowingFile file(path_, /*longest_line=*/8);
  std::vector<std::pair<std::string, uint64_t>> taken;
  const GrowingFile::Take take = [&](absl::string_view lines, uint64_t offset) {
    taken.emplace_back(lines, offset);
  };
  Write("one\nt");
  EXPECT_TRUE(file.ReadOn(false, take).ok());
  EXPECT_EQ(file.position(), 4u);
  for (const char* const text : {"wo\n", "three is too long"}) {
    Write(text);
    EXPECT_TRUE(file.ReadOn(false, take).ok());
  }
  Write("\nfour\nfive");
  EXPECT_TRUE(file.ReadOn(false, take).ok());
  EXPECT_THAT(taken, testing::ElementsAre(testing::Pair("one\n", 0), testing::Pair("two\n", 4),
                                          testing::Pair("four\n", 26)));
  EXPECT_EQ(file.position(), 31u);
  taken.clear();
  GrowingFile part(path_, /*longest_line=*/8, /*begin=*/4);
  EXPECT_TRUE(part.ReadOn(false, take, /*end=*/8).ok());
  EXPECT_THAT(taken, testing::ElementsAre(testing::Pair("two\n", 4)));
  EXPECT_EQ(part.position(), 8u);
}

TEST_F(GrowingFileTest, AFileThatCannotBeReadIsAnError) {
  GrowingFile file(folder_.path());
  EXPECT_FALSE(file.ReadOn(false, [](absl::string_view, uint64_t) {}).ok());
}

}  // namespace
}  // namespace tutti::service
