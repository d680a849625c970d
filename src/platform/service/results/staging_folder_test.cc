#include "platform/service/results/staging_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/test_patience.h"
#include "platform/service/results/job_files.h"
#include "platform/service/results/snapshots.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::ElementsAre;

TEST(StagingFolderTest, RemovesThoseOfEarlierProcessesAlone) {
  const base::TemporaryDirectory folder;
  const StagingFolder earlier(folder.path()), now(folder.path());
  ASSERT_NE(earlier.path(), now.path());
  for (const fs::path& path : {earlier.path(), now.path(), folder.path() / "job"}) {
    ASSERT_TRUE(base::MakeDirectories(path / "below").ok());
    ASSERT_TRUE(base::WriteFileAtomic(path / "below/file", "bytes").ok());
  }
  base::Janitor janitor;
  now.RemoveEarlier(janitor);
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), [&] { return janitor.waiting() == 0; }));
  EXPECT_FALSE(fs::exists(earlier.path()));
  EXPECT_TRUE(fs::exists(now.path() / "below/file"));
  EXPECT_TRUE(fs::exists(folder.path() / "job/below/file"));
}

TEST(StagingFolderTest, OfAFolderThatIsNotThereThereIsNothingToRemove) {
  const base::TemporaryDirectory folder;
  base::Janitor janitor;
  StagingFolder(folder.path() / "none").RemoveEarlier(janitor);
  EXPECT_EQ(janitor.waiting(), 0u);
}

// The service's folder has 1 MiB, of which nothing is free; jobs and snapshots have disks of their
// own.
class DisksOfTheirOwn : public testing::Test {
 protected:
  void SetUp() override {
    if (!Mount(home(), "size=1m") || !Mount(home() / "jobs", "size=64m") ||
        !Mount(home() / "snapshots", "size=64m")) {
      GTEST_SKIP() << "may not mount a small tmpfs";
    }
    const std::string much(4 << 20, 'x');
    EXPECT_TRUE(absl::IsResourceExhausted(base::ReplaceFile(home() / "filler", much)));
  }
  void TearDown() override {
    for (const fs::path& path : {home() / "jobs", home() / "snapshots", home()}) {
      ::umount2(path.c_str(), MNT_DETACH);
    }
  }
  static bool Mount(const fs::path& path, const char* options) {
    std::error_code ignored;
    fs::create_directories(path, ignored);
    return ::mount("tutti-test", path.c_str(), "tmpfs", 0, options) == 0;
  }
  fs::path home() const { return folder_.path() / "home"; }

 private:
  const base::TemporaryDirectory folder_;
};

TEST_F(DisksOfTheirOwn, TakeWhatTheServicesDiskHasNoRoomFor) {
  const JobFiles files(home() / "jobs");
  auto file = files.Receive("j", "outputs/large");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Reserve(8 << 20).ok());
  ASSERT_TRUE((*file)->Write(std::string(8 << 20, 'y')).ok());
  EXPECT_THAT(files.List("j").value(), ElementsAre()) << "what is not whole has no name";
  const absl::Status committed = (*file)->Commit();
  EXPECT_TRUE(committed.ok()) << committed;
  const auto kept = files.ReceiveAll("j", {{"outputs/small", "small"}});
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_THAT(*kept, ElementsAre(absl::OkStatus()));
  EXPECT_EQ(base::ReadFile(*files.Find("j", "outputs/small")).value(), "small");
  EXPECT_EQ(fs::file_size(*files.Find("j", "outputs/large")), 8u << 20);
}

// The folder of jobs has 1 MiB, of which nothing is free; job j, or its outputs, has another disk.
class JobOnADiskOfItsOwn : public testing::Test {
 protected:
  void SetUp() override {
    if (!Mount(jobs(), "size=1m") || !Mount(large(), "size=64m")) {
      GTEST_SKIP() << "may not mount a small tmpfs";
    }
  }
  void TearDown() override {
    for (const fs::path& path : {jobs() / "j/outputs", large(), jobs()}) {
      ::umount2(path.c_str(), MNT_DETACH);
    }
  }
  static bool Mount(const fs::path& path, const char* options) {
    fs::create_directories(path);
    return ::mount("tutti-test", path.c_str(), "tmpfs", 0, options) == 0;
  }
  static bool Bind(const fs::path& from, const fs::path& to) {
    fs::create_directories(from);
    fs::create_directories(to);
    return ::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) == 0;
  }
  fs::path jobs() const { return folder_.path() / "jobs"; }
  fs::path large() const { return folder_.path() / "large"; }
  void FillTheDiskOfJobs() {
    EXPECT_TRUE(base::ReplaceFile(jobs() / "filler", std::string(900 << 10, 'x')).ok());
  }
  // Takes large and small results, of which nothing else is left in `top`.
  void Takes(const fs::path& top) {
    const JobFiles files(jobs());
    auto file = files.Receive("j", "outputs/deep/large");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Reserve(8 << 20).ok());
    EXPECT_TRUE((*file)->Write(std::string(8 << 20, 'y')).ok());
    EXPECT_THAT(files.List("j").value(), ElementsAre()) << "what is not whole has no name";
    const absl::Status committed = (*file)->Commit();
    EXPECT_TRUE(committed.ok()) << committed;
    const std::vector<http::BatchFile> batch(40, {"outputs/small", "small"});
    const auto kept = files.ReceiveAll("j", batch);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_THAT(*kept, Each(absl::OkStatus()));
    EXPECT_EQ(base::ReadFile(*files.Find("j", "outputs/small")).value(), "small");
    EXPECT_EQ(fs::file_size(*files.Find("j", "outputs/deep/large")), 8u << 20);
    for (const auto& entry : fs::directory_iterator(top)) {
      EXPECT_NE(entry.path().filename().native().front(), '.') << entry.path();
    }
  }

 private:
  const base::TemporaryDirectory folder_;
};

TEST_F(JobOnADiskOfItsOwn, ByALinkTakesItsResultsThere) {
  FillTheDiskOfJobs();
  fs::create_directory_symlink(large(), jobs() / "j");
  Takes(large());
}

TEST_F(JobOnADiskOfItsOwn, ByAMountOfItsOutputsTakesThemThere) {
  FillTheDiskOfJobs();
  ASSERT_TRUE(Mount(jobs() / "j/outputs", "size=64m"));
  Takes(jobs() / "j/outputs");
}

// Which has the same device, and yet no rename leads there.
TEST_F(JobOnADiskOfItsOwn, MayBeAPartOfTheSameDisk) {
  ASSERT_EQ(::mount("tutti-test", jobs().c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0);
  ASSERT_TRUE(Bind(jobs() / "elsewhere", jobs() / "j/outputs"));
  Takes(jobs() / "j/outputs");
}

TEST_F(JobOnADiskOfItsOwn, LosesWhatAKilledProcessHasLeftThere) {
  fs::create_directory_symlink(large(), jobs() / "j");
  fs::create_directories(large() / "outputs");
  const StagingFolder killed(jobs());
  const fs::path left = killed.NewPathFor(jobs() / "j/outputs").value();
  EXPECT_EQ(fs::path(left.parent_path()), jobs() / "j");
  ASSERT_TRUE(base::ReplaceFile(left, "half").ok());
  ASSERT_TRUE(base::ReplaceFile(large() / ".incoming-of-a-user", "kept").ok());
  const StagingFolder now(jobs());
  const fs::path mine = now.NewPathFor(jobs() / "j/outputs").value();
  ASSERT_TRUE(base::ReplaceFile(mine, "arrives").ok());
  EXPECT_TRUE(now.NewPathFor(jobs() / "j/outputs").ok());
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(mine));
  EXPECT_TRUE(fs::exists(large() / ".incoming-of-a-user"));
}

TEST_F(JobOnADiskOfItsOwn, IsToldForGoodWhereNoRenameLeads) {
  ASSERT_TRUE(base::ReplaceFile(jobs() / "x", "x").ok());
  const absl::Status moved = MoveIntoPlace(jobs() / "x", large() / "x");
  EXPECT_TRUE(absl::IsInvalidArgument(moved)) << moved;
  EXPECT_THAT(std::string(moved.message()),
              testing::AllOf(testing::HasSubstr((large() / "x").native()),
                             testing::HasSubstr("take the mount or quota away")));
}

TEST_F(DisksOfTheirOwn, TakeCodeToo) {
  const Snapshots snapshots(home() / "snapshots");
  const std::string name = absl::StrCat("sha256:", base::Hex(base::Sha256Of("code")));
  auto upload = snapshots.Begin(name);
  ASSERT_TRUE(upload.ok()) << upload.status();
  ASSERT_TRUE(upload->Write("code").ok());
  const absl::Status committed = upload->Commit();
  EXPECT_TRUE(committed.ok()) << committed;
  EXPECT_TRUE(snapshots.Find(name).ok());
}

}  // namespace
}  // namespace tutti::service
