#include "platform/cache/fetched_home.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/hash.h"

namespace tutti::cache {
namespace {

namespace fs = std::filesystem;

class FetchedHomeTest : public ::testing::Test {
 protected:
  FetchedHomeTest() { Put("a", "1"), Put("b/c", "2"), Put(".tutti-objects", "{}"); }

  void Put(const char* path, const char* text) {
    const fs::path file = home_.part() / path;
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, text).ok());
  }
  // Writes as somebody does who changes the modes first.
  void WriteTo(const char* path) {
    const fs::path file = home_.data() / path;
    fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
    const timespec later[2] = {absl::ToTimespec(absl::Now() + absl::Seconds(5)),
                               absl::ToTimespec(absl::Now() + absl::Seconds(5))};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), later, 0), 0);
  }
  bool IsDamaged() {
    base::Touch(home_.folder());
    return home_.IsDamaged(Reread::kNever, cancelled_).value();
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat info = {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 0777;
  }

  const base::TemporaryDirectory folder_;
  const FetchedHome home_{folder_.path() / "key", "train", false};
  std::atomic<bool> cancelled_ = false;
};

TEST_F(FetchedHomeTest, WhatIsKeptIsReadOnlyAndCanBeRemoved) {
  EXPECT_FALSE(*home_.IsThere());
  ASSERT_TRUE(home_.Keep().ok());
  EXPECT_TRUE(*home_.IsThere());
  for (const char* path : {"a", "b/c"}) EXPECT_EQ(ModeOf(home_.data() / path) & 0222, 0u) << path;
  for (const char* path : {"", "b", ".."})
    EXPECT_EQ(ModeOf(home_.data() / path) & 0222, 0u) << path;
  EXPECT_EQ(ModeOf(home_.data() / "b") & 0555, 0555u);
  EXPECT_FALSE(fs::exists(home_.data() / ".tutti-objects")) << "a job that lists it sees its data";
  EXPECT_TRUE(base::RemoveTree(home_.folder()).ok());
  EXPECT_FALSE(fs::exists(home_.folder()));
}

TEST_F(FetchedHomeTest, WhoWasKilledWhileItWasKeptGoesOn) {
  fs::rename(home_.folder() / "part", home_.folder() / "whole");
  EXPECT_TRUE(*home_.IsThere());
  EXPECT_EQ(*base::ReadFile(home_.data() / "b/c"), "2");
  EXPECT_FALSE(IsDamaged());
  EXPECT_FALSE(home_.IsVerified()) << "the machine may have lost its power meanwhile";
}

TEST_F(FetchedHomeTest, WhatCameInPartBeforeIsNotTakenForVerified) {
  ASSERT_TRUE(home_.Keep(/*is_verified=*/false).ok());
  EXPECT_FALSE(home_.IsVerified());
}

TEST_F(FetchedHomeTest, NoticesWhatWasWrittenToAfterwards) {
  ASSERT_TRUE(home_.Keep().ok());
  WriteTo("b/c");
  EXPECT_TRUE(IsDamaged());
  EXPECT_TRUE(IsDamaged()) << "once is for ever";
}

TEST_F(FetchedHomeTest, NoticesWhatWasAddedOrRemoved) {
  ASSERT_TRUE(home_.Keep().ok());
  WriteTo("b");  // the folder has the time of that
  EXPECT_TRUE(IsDamaged());
}

TEST_F(FetchedHomeTest, LooksSeldomAtWhatTakesLong) {
  ASSERT_TRUE(home_.Keep().ok());
  EXPECT_FALSE(IsDamaged());
  ASSERT_TRUE(base::ReplaceFile(home_.folder() / "looked", "60\n").ok());
  WriteTo("a");
  EXPECT_FALSE(IsDamaged());
  ASSERT_TRUE(base::ReplaceFile(home_.folder() / "looked", "0\n").ok());
  EXPECT_TRUE(IsDamaged());
}

TEST_F(FetchedHomeTest, LooksAtOnceAfterAJobThatCouldWriteToIt) {
  ASSERT_TRUE(home_.Keep().ok());
  EXPECT_FALSE(IsDamaged());
  ASSERT_TRUE(base::ReplaceFile(home_.folder() / "looked", "60\n").ok());
  WriteTo("a");
  EXPECT_FALSE(IsDamaged());
  home_.NoteExposed();
  EXPECT_TRUE(IsDamaged());
}

// The home is as after a start of the machine since which nothing was read.
class FetchedHomeRereadTest : public FetchedHomeTest {
 protected:
  void KeepWithHashes(std::initializer_list<std::pair<const char*, const char*>> files) {
    std::string lines;
    for (const auto& [path, text] : files) {
      Put(path, text);
      absl::StrAppend(&lines, R"({"path": ")", path, R"(", "bytes": 1, "etag": "", "sha256": ")",
                      base::Hex(base::Sha256Of(text)), "\"}\n");
    }
    Put(".tutti-objects", lines.c_str());
    ASSERT_TRUE(home_.Keep().ok());
    EXPECT_TRUE(home_.IsVerified()) << "what comes is hashed on its way";
    fs::remove(home_.folder() / "verified");
    EXPECT_FALSE(home_.IsVerified());
  }
  // Changes a file as a bad disk does, without its time.
  void Damage(const char* path) {
    const fs::path file = home_.data() / path;
    struct stat info = {};
    ASSERT_EQ(::stat(file.c_str(), &info), 0);
    fs::permissions(file, fs::perms::owner_write, fs::perm_options::add);
    const auto opened = base::Open(file, O_WRONLY);
    ASSERT_TRUE(opened.ok() && base::WriteAll(opened->get(), "?", "file").ok());
    const timespec times[2] = {info.st_atim, info.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  }
  bool IsDamaged(Reread reread) {
    base::Touch(home_.folder());
    return home_.IsDamaged(reread, cancelled_).value();
  }
};

TEST_F(FetchedHomeRereadTest, ReadsAllOnceInEachStartOfTheMachine) {
  KeepWithHashes({{"a", "1"}, {"b/c", "2"}});
  EXPECT_FALSE(IsDamaged(Reread::kOnceABoot));
  EXPECT_TRUE(home_.IsVerified());
  Damage("b/c");
  EXPECT_FALSE(IsDamaged(Reread::kOnceABoot)) << "it was read in this start of the machine";
  fs::remove(home_.folder() / "verified");
  EXPECT_FALSE(IsDamaged(Reread::kNever));
  EXPECT_EQ(home_.FirstDamaged(cancelled_).value(), "b/c");
  EXPECT_TRUE(IsDamaged(Reread::kOnceABoot));
  EXPECT_FALSE(home_.IsVerified());
  EXPECT_TRUE(IsDamaged(Reread::kNever)) << "once is for ever";
}

TEST_F(FetchedHomeRereadTest, AFileThatIsGoneIsDamageToo) {
  KeepWithHashes({{"a", "1"}, {"b/c", "2"}});
  fs::permissions(home_.data() / "b", fs::perms::owner_write, fs::perm_options::add);
  ASSERT_TRUE(fs::remove(home_.data() / "b/c"));
  EXPECT_EQ(home_.FirstDamaged(cancelled_).value(), "b/c");
}

TEST_F(FetchedHomeRereadTest, AReadThatIsStoppedSaysNothingOfTheFiles) {
  KeepWithHashes({{"a", "1"}});
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(home_.IsDamaged(Reread::kOnceABoot, cancelled_).status()));
  EXPECT_FALSE(fs::exists(home_.folder() / "damaged"));
}

TEST(FetchedHome, OfAFileHasIt) {
  const base::TemporaryDirectory folder;
  const FetchedHome home(folder.path() / "key", "model.pt", true);
  ASSERT_TRUE(base::MakeDirectories(home.part()).ok());
  ASSERT_TRUE(base::WriteFileAtomic(home.part() / "model.pt", "weights").ok());
  ASSERT_TRUE(base::WriteFileAtomic(home.part() / ".tutti-objects", "{}").ok());
  ASSERT_TRUE(home.Keep().ok());
  EXPECT_EQ(*base::ReadFile(home.data()), "weights");
  EXPECT_TRUE(fs::exists(folder.path() / "key/objects"));
}

}  // namespace
}  // namespace tutti::cache
