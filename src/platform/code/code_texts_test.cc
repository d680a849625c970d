#include "platform/code/code_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/code/code_archive_for_tests.h"

namespace tutti::code {
namespace {

using ::testing::ElementsAre;
using ::testing::FieldsAre;
using ::testing::Optional;
using ::testing::SizeIs;

class CodeTextsTest : public testing::Test {
 protected:
  absl::StatusOr<CodeTexts> Read(const std::vector<TestEntry>& entries,
                                 const TextLimits& limits = {}) {
    EXPECT_TRUE(base::WriteFileAtomic(file_, TestArchive(entries).bytes()).ok());
    return ReadCodeTexts(file_, limits);
  }

  const base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "code.tar.zst";
};

TEST_F(CodeTextsTest, AreThoseOfFilesByPath) {
  const auto code = Read({{"./", "", AE_IFDIR},
                          {"train.py", "print('é')\n"},
                          {"lib/a.py", ""},
                          {"link", "train.py", AE_IFLNK}});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(code->files,
              ElementsAre(FieldsAre("lib/a.py", 0, Optional(std::string())),
                          FieldsAre("train.py", 12, Optional(std::string("print('é')\n")))));
  EXPECT_EQ(code->left_out, 0);
}

TEST_F(CodeTextsTest, AreNotOfBytesThatAreNoText) {
  const auto code = Read({{"a", std::string("\x89PNG")},
                          {"b", std::string("a\0b", 3)},
                          {"c", std::string("cut off \xC3")},
                          {"d", "text"}});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(code->files,
              ElementsAre(FieldsAre("a", 4, std::nullopt), FieldsAre("b", 3, std::nullopt),
                          FieldsAre("c", 9, std::nullopt),
                          FieldsAre("d", 4, Optional(std::string("text")))));
}

TEST_F(CodeTextsTest, EndAtTheirLimits) {
  const std::vector<TestEntry> entries = {
      {"a", "12345"}, {"b", "1234"}, {"c", "123"}, {"d", "1"}, {"e", "1"}};
  const auto code = Read(entries, {.files = 4, .text = 4, .texts = 5});
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(code->files, ElementsAre(FieldsAre("a", 5, std::nullopt),  // too long
                                       FieldsAre("b", 4, Optional(std::string("1234"))),
                                       FieldsAre("c", 3, std::nullopt),  // too much in all
                                       FieldsAre("d", 1, Optional(std::string("1")))));
  EXPECT_EQ(code->left_out, 1);
}

TEST_F(CodeTextsTest, EndWhereTheArchiveUnpacksToTooMuch) {
  const std::vector<TestEntry> entries = {
      {"a", "text"}, {"b", RandomBytes(200'000)}, {"c", "text"}, {"d", "text"}};
  for (const size_t text : {1'000, 200'000}) {  // b is passed over, or read
    const auto code = Read(entries, {.text = text, .unpacked = 100'000});
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_THAT(code->files, ElementsAre(FieldsAre("a", 4, Optional(std::string("text"))),
                                         FieldsAre("b", 200'000, std::nullopt)));
    EXPECT_EQ(code->left_out, 1) << "c and d were not reached";
  }
}

TEST_F(CodeTextsTest, AreOf2000FilesAtMost) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 2100; ++i) entries.push_back({absl::StrCat(i), ""});
  const auto code = Read(entries);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(code->files, SizeIs(2000));
  EXPECT_EQ(code->left_out, 100);
}

TEST_F(CodeTextsTest, SayWhatIsNoArchive) {
  EXPECT_TRUE(absl::IsInvalidArgument(Read({{"../a", "x"}}).status()));
  ASSERT_TRUE(base::WriteFileAtomic(file_, "no archive at all").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ReadCodeTexts(file_).status()));
  EXPECT_TRUE(absl::IsNotFound(ReadCodeTexts(folder_.path() / "none").status()));
}

}  // namespace
}  // namespace tutti::code
