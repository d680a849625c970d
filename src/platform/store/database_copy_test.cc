#include "platform/store/database_copy.h"

#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/store/store.h"

namespace tutti::store {
namespace {
using ::testing::HasSubstr;

Job JobNamed(const std::string& id) {
  Job job{.id = id, .created = absl::FromUnixSeconds(1)};
  job.spec.command = "true";
  return job;
}

class DatabaseCopyTest : public ::testing::Test {
 protected:
  std::filesystem::path At(const char* name) const { return folder_.path() / name; }
  std::unique_ptr<Store> Open(const char* name) {
    auto store = Store::Open(At(name));
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  base::TemporaryDirectory folder_;
};

TEST_F(DatabaseCopyTest, HasWhatWasCommittedBeforeWhileOthersWrite) {
  const auto store = Open("tutti.db");
  std::atomic<int> inserted = 0;
  std::atomic<bool> over = false;
  std::thread writer([&] {
    for (int i = 0; !over && i < 100'000; ++i) {
      if (!store->InsertJob(JobNamed(absl::StrCat("j", i)), Event{}).ok()) return;
      inserted = i + 1;
    }
  });
  for (int copies = 0; copies < 5; ++copies) {
    const int before = inserted;
    while (inserted < before + 10) std::this_thread::yield();
    const int at_least = inserted;
    const std::string name = absl::StrCat("copy-", copies);
    const absl::Status copied = CopyDatabase(At("tutti.db"), At(name.c_str()));
    ASSERT_TRUE(copied.ok()) << copied;
    const auto copy = Open(name.c_str());
    EXPECT_TRUE(copy->GetJob(absl::StrCat("j", at_least - 1)).ok());
  }
  over = true;
  writer.join();
}

TEST_F(DatabaseCopyTest, IsForItsOwnerAloneAndReplacesNothing) {
  Open("tutti.db");
  ASSERT_TRUE(CopyDatabase(At("tutti.db"), At("copy")).ok());
  struct stat info = {};
  ASSERT_EQ(::stat(At("copy").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_TRUE(absl::IsAlreadyExists(CopyDatabase(At("tutti.db"), At("copy"))));
  EXPECT_TRUE(absl::IsNotFound(CopyDatabase(At("none"), At("other"))));
}

TEST_F(DatabaseCopyTest, WhatKeepsItFromBeingWrittenIsNamed) {
  const auto store = Open("tutti.db");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{.rlim_cur = 8 << 10, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const absl::Status copied = CopyDatabase(At("tutti.db"), At("copy"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(copied.message(), HasSubstr("File too large"));
}

TEST_F(DatabaseCopyTest, GivesNoNumberThatTheOtherGaveSince) {
  const auto store = Open("tutti.db");
  ASSERT_TRUE(store->InsertJob(JobNamed("before"), Event{}).ok());
  ASSERT_TRUE(CopyDatabase(At("tutti.db"), At("copy")).ok());
  const auto since = store->InsertJob(JobNamed("since"), Event{});
  ASSERT_TRUE(SkipNumbersGivenSince(At("copy")).ok());
  const auto after = Open("copy")->InsertJob(JobNamed("since"), Event{});
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_GT(after->job.sequence, since->job.sequence);
  EXPECT_GT(after->last.sequence, since->last.sequence);
}

// SQLite says of that only that it cannot open the file.
TEST_F(DatabaseCopyTest, ThatThereIsNoRoomForALogBesideItIsSaid) {
  if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=16m,nr_inodes=64") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  const absl::Cleanup unmount = [&] { ::umount2(folder_.path().c_str(), MNT_DETACH); };
  Open("tutti.db").reset();
  ASSERT_TRUE(CopyDatabase(At("tutti.db"), At("copy")).ok());
  for (int i = 0; base::ReplaceFile(At(absl::StrCat(i).c_str()), "").ok(); ++i) {
  }
  const absl::Status skipped = SkipNumbersGivenSince(At("copy"));
  EXPECT_TRUE(absl::IsResourceExhausted(skipped)) << skipped;
  EXPECT_THAT(std::string(skipped.message()), HasSubstr("No space left on device"));
  const auto opened = Store::Open(At("tutti.db"));
  if (!opened.ok()) {
    EXPECT_TRUE(absl::IsResourceExhausted(opened.status())) << opened.status();
  }
}

// As where the disk was full for a moment: what SQLite met then is not known any more.
TEST_F(DatabaseCopyTest, ThatALogCouldNotBeOpenedIsNotTakenForAMissingDatabase) {
  Open("tutti.db").reset();
  ASSERT_TRUE(CopyDatabase(At("tutti.db"), At("copy")).ok());
  ASSERT_TRUE(base::MakeDirectories(At("copy-wal")).ok());  // in its way
  const absl::Status skipped = SkipNumbersGivenSince(At("copy"));
  EXPECT_TRUE(absl::IsFailedPrecondition(skipped)) << skipped;
  EXPECT_THAT(std::string(skipped.message()), HasSubstr("see whether its disk is full at times"));
}

TEST_F(DatabaseCopyTest, OneThatIsNoDatabaseIsNamed) {
  ASSERT_TRUE(base::WriteFileAtomic(At("tutti.db"), std::string(8192, 'x')).ok());
  const absl::Status copied = CopyDatabase(At("tutti.db"), At("copy"));
  EXPECT_TRUE(absl::IsDataLoss(copied)) << copied;
  EXPECT_THAT(std::string(copied.message()), HasSubstr(At("tutti.db").string()));
}

}  // namespace
}  // namespace tutti::store
