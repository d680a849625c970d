#include "platform/code/code_archive.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "platform/code/code_archive_for_tests.h"

namespace tutti::code {
namespace {

using Kind = CodeEntry::Kind;
using ::testing::HasSubstr;

class CodeArchiveTest : public testing::Test {
 protected:
  std::unique_ptr<CodeArchive> Open(const std::vector<TestEntry>& entries,
                                    uint64_t most_bytes = CodeArchive::kUnlimited) {
    EXPECT_TRUE(base::WriteFileAtomic(file_, TestArchive(entries).bytes()).ok());
    auto archive = CodeArchive::Open(file_, most_bytes);
    EXPECT_TRUE(archive.ok()) << archive.status();
    return *std::move(archive);
  }

  const base::TemporaryDirectory folder_;
  const std::filesystem::path file_ = folder_.path() / "code.tar.zst";
};

TEST_F(CodeArchiveTest, ReadsEntriesAndTheContentOfThoseThatAreAskedFor) {
  const auto archive = Open({{"./", "", AE_IFDIR},
                             {"./a//b.txt", "text"},
                             {"skipped", "x"},
                             {"link", "a/b.txt", AE_IFLNK},
                             {"hard", "a/b.txt", AE_IFREG, true},
                             {"pipe", "", AE_IFIFO}});
  EXPECT_EQ((*archive->Next())->kind, Kind::kFolder);
  const auto file = *archive->Next();
  EXPECT_EQ(file->name, "a/b.txt");
  EXPECT_EQ(file->kind, Kind::kFile);
  EXPECT_EQ(file->bytes, 4);
  EXPECT_FALSE(file->executable);
  EXPECT_EQ(*archive->Text(4), "text");
  EXPECT_EQ((*archive->Next())->name, "skipped");
  const auto link = *archive->Next();
  EXPECT_EQ(link->kind, Kind::kLink);
  EXPECT_EQ(link->target, "a/b.txt");
  EXPECT_EQ((*archive->Next())->kind, Kind::kHardLink);
  EXPECT_EQ((*archive->Next())->kind, Kind::kOther);
  EXPECT_FALSE(archive->Next()->has_value());
}

TEST_F(CodeArchiveTest, WritesContentToAFile) {
  const std::string content(300'000, 'c');
  const auto archive = Open({{"a", content}});
  ASSERT_TRUE(archive->Next().ok());
  const auto fd = base::Open(folder_.path() / "a", O_WRONLY | O_CREAT | O_EXCL);
  ASSERT_TRUE(archive->WriteTo(fd->get(), "a").ok());
  EXPECT_TRUE(*base::ReadFile(folder_.path() / "a") == content);
}

TEST_F(CodeArchiveTest, RefusesTextsThatAreTooLong) {
  const auto archive = Open({{"a", std::string(300'000, 'a')}, {"b", "b"}});
  ASSERT_TRUE(archive->Next().ok());
  EXPECT_TRUE(absl::IsOutOfRange(archive->Text(299'999).status()));
  ASSERT_TRUE(archive->Next().ok());
  EXPECT_EQ(*archive->Text(1), "b") << "what follows can be read";
}

TEST_F(CodeArchiveTest, RefusesNamesThatLeadOut) {
  for (const char* name : {"../evil", "/etc/passwd", "a/../../b"}) {
    const absl::Status refused = Open({{name, "x"}})->Next().status();
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << name << ": " << refused;
  }
  EXPECT_THAT(std::string(Open({{"./.", "x"}})->Next().status().message()),
              HasSubstr("\"./.\" has no name"));
}

TEST_F(CodeArchiveTest, EndsWhereItUnpacksToTooMuchAlsoWhatIsPassedOver) {
  const std::vector<TestEntry> entries(4, {"random", RandomBytes(200'000)});
  const auto archive = Open(entries, 100'000);
  EXPECT_TRUE(archive->Next().ok());
  EXPECT_FALSE(archive->is_over());
  const absl::Status over = archive->Next().status();
  EXPECT_TRUE(absl::IsResourceExhausted(over)) << over;
  EXPECT_TRUE(archive->is_over());
  const auto of_content = Open(entries, 100'000);
  EXPECT_TRUE(of_content->Next().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(of_content->Text(200'000).status()));
}

TEST_F(CodeArchiveTest, SaysWhatTheSystemSaidOrThatItIsBroken) {
  const absl::Status none = CodeArchive::Open(folder_.path() / "none").status();
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(CodeArchive::Open(folder_.path()).status().message()),
              HasSubstr("Is a directory"));
  ASSERT_TRUE(base::WriteFileAtomic(file_, "no archive at all").ok());
  const auto other = CodeArchive::Open(file_);
  const absl::Status broken = other.ok() ? (*other)->Next().status() : other.status();
  EXPECT_TRUE(absl::IsInvalidArgument(broken)) << broken;
  EXPECT_THAT(std::string(broken.message()), HasSubstr("broken archive: "));
}

TEST(SafeRelativePathTest, CleansGoodNamesAndRefusesOthers) {
  EXPECT_EQ(*SafeRelativePath("./a//b/./c/"), "a/b/c");
  EXPECT_EQ(*SafeRelativePath("."), "");
  EXPECT_EQ(*SafeRelativePath("..a/b.."), "..a/b..");
  std::vector<std::string> refused = {"", "/", "a/../b", ".."};
  refused.push_back(std::string("a\0b", 3));
  refused.push_back(std::string(300, 'x'));
  refused.push_back(std::string(5000, '/'));
  refused.back().push_back('x');
  for (const std::string& name : refused) {
    EXPECT_FALSE(SafeRelativePath(name).ok()) << name;
  }
}

}  // namespace
}  // namespace tutti::code
