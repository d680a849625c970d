#include "base/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <string>

#include "absl/cleanup/cleanup.h"

namespace tutti::base {
namespace {

TEST(File, ReadsBackWhatWasWrittenAtomically) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "a";
  ASSERT_TRUE(WriteFileAtomic(path, "one").ok());
  ASSERT_TRUE(WriteFileAtomic(path, absl::string_view("t\0wo", 4)).ok());
  EXPECT_EQ(*ReadFile(path), std::string("t\0wo", 4));
  // Nothing but the file itself is left behind.
  const auto entries = std::filesystem::directory_iterator(directory.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(File, AnUpdateThatChangesNothingWritesNothing) {
  const TemporaryDirectory folder;
  const auto file = folder.path() / "file";
  ASSERT_TRUE(UpdateFile(file, "long text").ok());
  const auto inode = [&] {
    struct stat info = {};
    EXPECT_EQ(::stat(file.c_str(), &info), 0);
    return info.st_ino;
  };
  const auto before = inode();
  const UniqueFd keeps_the_inode = *Open(file, O_RDONLY);
  ASSERT_TRUE(UpdateFile(file, "long text").ok());
  EXPECT_EQ(inode(), before);
  ASSERT_TRUE(UpdateFile(file, "text").ok());
  EXPECT_NE(inode(), before);
  EXPECT_EQ(*ReadFile(file), "text");
}

TEST(File, IsOverwrittenInPlaceWhereThereIsNoRoomForASecondOne) {
  const TemporaryDirectory directory;
  if (::mount("tmpfs", directory.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(directory.path().c_str(), MNT_DETACH); };
  const std::filesystem::path file = directory.path() / "beats";
  ASSERT_TRUE(ReplaceOrOverwrite(file, std::string(4000, 'a')).ok());
  EXPECT_FALSE(ReplaceFile(directory.path() / "large", std::string(1 << 20, 'x')).ok());
  for (int i = 0; ReplaceFile(directory.path() / std::to_string(i), "x").ok(); ++i) {
  }
  EXPECT_FALSE(ReplaceFile(file, std::string(4000, 'b')).ok());
  EXPECT_TRUE(ReplaceOrOverwrite(file, std::string(4096, 'b')).ok());
  EXPECT_EQ(*ReadFile(file), std::string(4096, 'b'));
  EXPECT_TRUE(ReplaceOrOverwrite(file, "c").ok());
  EXPECT_EQ(*ReadFile(file), "c");
  EXPECT_FALSE(ReplaceOrOverwrite(file, std::string(4097, 'd')).ok());
  EXPECT_EQ(*ReadFile(file), "c") << "as it was";
  EXPECT_FALSE(ReplaceOrOverwrite(directory.path() / "none", "e").ok());
}

TEST(File, ErrorsNameThePath) {
  const auto missing = ReadFile("/nowhere/at/all");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.status().message().find("/nowhere/at/all"), absl::string_view::npos);
  EXPECT_FALSE(WriteFileAtomic("/nowhere/at/all", "x").ok());
}

TEST(File, RefusesAFileLargerThanAsked) {
  TemporaryDirectory directory;
  ASSERT_TRUE(WriteFileAtomic(directory.path() / "big", std::string(100, 'x')).ok());
  EXPECT_EQ(ReadFile(directory.path() / "big", 99).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ReadFile(directory.path() / "big", 100).ok());
}

TEST(File, ReadingAFolderIsAnError) {
  TemporaryDirectory directory;
  EXPECT_FALSE(ReadFile(directory.path()).ok());
}

TEST(File, ShortensWhatIsLongerAlone) {
  TemporaryDirectory directory;
  const auto path = directory.path() / "a";
  ASSERT_TRUE(WriteFileAtomic(path, "12345").ok());
  const UniqueFd fd = *Open(path, O_RDWR);
  ASSERT_TRUE(Shorten(fd.get(), 9, "a").ok());
  EXPECT_EQ(*ReadFile(path), "12345");
  ASSERT_TRUE(Shorten(fd.get(), 2, "a").ok());
  EXPECT_EQ(*ReadFile(path), "12");
  EXPECT_THAT(std::string(Shorten(Open(path, O_RDONLY)->get(), 1, "a").message()),
              testing::HasSubstr("truncate a"));
}

TEST(File, MakesFoldersWithTheirParents) {
  const TemporaryDirectory directory;
  const auto path = directory.path();
  EXPECT_TRUE(MakeDirectories(path / "a/b/c/").ok());
  EXPECT_TRUE(std::filesystem::is_directory(path / "a/b/c"));
  EXPECT_TRUE(MakeDirectories(path / "a/b").ok()) << "it is there";
  std::filesystem::create_directory_symlink(path / "a", path / "link");
  EXPECT_TRUE(MakeDirectories(path / "link").ok());
  ASSERT_TRUE(WriteFileAtomic(path / "file", "").ok());
  const auto refused = [&](const char* below) {
    return std::string(MakeDirectories(path / below).message());
  };
  EXPECT_EQ(refused("file"), absl::StrCat("mkdir ", path.string(), "/file: Not a directory"));
  EXPECT_EQ(refused("file/a/b"),
            absl::StrCat("mkdir ", path.string(), "/file/a/b: Not a directory"));
}

TEST(File, TemporaryDirectoryGoesWithWhatItHolds) {
  std::filesystem::path kept;
  {
    TemporaryDirectory directory;
    kept = directory.path();
    ASSERT_TRUE(MakeDirectories(kept / "x/y").ok());
    ASSERT_TRUE(WriteFileAtomic(kept / "x/y/z", "1").ok());
  }
  EXPECT_FALSE(std::filesystem::exists(kept));
}

}  // namespace
}  // namespace tutti::base
