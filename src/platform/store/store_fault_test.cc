// Tests what the store keeps when processes are killed, disks fill up and files are damaged.
// Covers: sqlite_connection.cc, database.cc.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "platform/store/database.h"
#include "platform/store/schema.h"
#include "platform/store/store.h"

namespace tutti::store {
namespace {
using ::testing::HasSubstr;
using enum JobState;

Job AJob() {
  Job job;
  job.id = "one";
  job.spec.command = "true";
  return job;
}

Event AnEventOf(JobState state, std::string detail = "{}") {
  return {0, absl::UnixEpoch(), state, "", std::move(detail)};
}

class StoreFaultTest : public ::testing::Test {
 protected:
  // Runs `body` in a process of its own; returns wait(2)'s status.
  static int InChild(const std::function<void()>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      body();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
  }

  std::unique_ptr<Store> Open(StoreOptions options = {}) {
    auto store = Store::Open(path_, std::move(options));
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  absl::Status ErrorOfOpening() { return Store::Open(path_).status(); }

  void Damage(off_t offset, size_t count) {
    auto fd = base::Open(path_, O_RDWR);
    ASSERT_TRUE(fd.ok());
    const std::string junk(count, '\x5a');
    ASSERT_EQ(::pwrite(fd->get(), junk.data(), count, offset), static_cast<ssize_t>(count));
  }

  base::TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "store.db";
};

TEST_F(StoreFaultTest, WhatWasAnsweredSurvivesKill9) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    auto store = Store::Open(path_);
    auto record = (*store)->InsertJob(AJob(), AnEventOf(kQueued));
    int64_t last = record->last.sequence;
    while (true) {
      last = (*store)->AppendEvent("one", last, AnEventOf(kQueued))->sequence;
      if (::write(ends[1], &last, sizeof last) != sizeof last) ::_exit(1);
    }
  }
  int64_t answered = 0;
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(::read(ends[0], &answered, sizeof answered), ssize_t{sizeof answered});
  }
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  ::waitpid(pid, nullptr, 0);
  ::close(ends[1]);
  while (::read(ends[0], &answered, sizeof answered) == sizeof answered) {
  }
  ::close(ends[0]);

  const auto events = Open()->EventsOf("one");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_GE(events->back().sequence, answered);
  for (size_t i = 0; i < events->size(); ++i) {
    EXPECT_EQ((*events)[i].sequence, static_cast<int64_t>(i) + 1);
  }
}

TEST_F(StoreFaultTest, ADeletionThatIsKilledAtAnyCommitLeavesAllOfItOrIsGoneOnWith) {
  constexpr int kChildren = 100;
  const std::filesystem::path whole = path_;
  {
    const auto store = Open();
    const auto past = [](int64_t) { return std::vector{AnEventOf(kQueued), AnEventOf(kCanceled)}; };
    for (int i = -1; i < kChildren; ++i) {
      Job job = AJob();
      job.id = i < 0 ? "p" : absl::StrCat("p.", i);
      job.parent = i < 0 ? "" : i % 10 == 1 ? "p.0" : "p";
      ASSERT_TRUE(store->InsertJob(job, past, Durability::kCrash).ok());
    }
  }
  bool is_whole = true;
  for (int64_t call = 1; is_whole || call < 100; ++call) {
    path_ = directory_.path() / absl::StrCat("killed-", call, ".db");
    std::filesystem::copy_file(whole, path_);
    const int status = InChild([&] {
      const auto store = Open({.on_commit = [call](int64_t now) {
        if (now == call) ::kill(::getpid(), SIGKILL);
      }});
      if (!store->DeleteJob("p").ok()) ::_exit(1);
    });
    const auto store = Open();
    is_whole = store->GetJob("p").ok();
    const size_t left = store->TreeOf("p").ok() ? store->TreeOf("p")->size() : 0;
    EXPECT_EQ(is_whole, left == 1 + kChildren && store->UnfinishedDeletions()->empty());
    EXPECT_EQ(call < 4, is_whole) << "the first two are of the start";
    EXPECT_TRUE(store->FinishDeletion("p").ok() || is_whole);
    if (!is_whole) {
      EXPECT_TRUE(absl::IsNotFound(store->TreeOf("p").status()));
    }
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      EXPECT_GT(call, 8) << "it took more than two commits";
      break;
    }
  }
}

// The files as they are when the power is lost before the last event is synced.
TEST_F(StoreFaultTest, TheNumberOfAnEventThatAPowerLossTookIsNotGivenAgain) {
  auto store = Open();
  store->InsertJob(AJob(), AnEventOf(kQueued)).status().IgnoreError();
  store.reset();
  store = Open();
  const int64_t kept = store
                           ->AppendEvent("one", store->GetJob("one")->last.sequence,
                                         AnEventOf(kPreparing), Durability::kCrash)
                           ->sequence;
  const std::filesystem::path synced = directory_.path() / "synced";
  std::filesystem::create_directory(synced);
  for (const char* suffix : {"", "-wal"}) {
    std::filesystem::copy_file(path_.string() + suffix,
                               synced / (std::string("store.db") + suffix));
  }
  const int64_t lost =
      store->AppendEvent("one", kept, AnEventOf(kRunning), Durability::kCrash)->sequence;
  store.reset();
  path_ = synced / "store.db";
  store = Open();
  EXPECT_EQ(store->GetJob("one")->last.state, kPreparing);
  EXPECT_GT(store->AppendEvent("one", kept, AnEventOf(kFailed))->sequence, lost);
}

TEST_F(StoreFaultTest, AJobThatDoesNotGetOntoTheDiskIsNotTakenIn) {
  absl::Status sync = absl::UnavailableError("the device fails");
  StoreOptions options;
  options.on_sync = [&] { return sync; };
  auto store = *Store::Open(path_, options);
  EXPECT_EQ(store->InsertJob(AJob(), AnEventOf(kQueued)).status(), sync);
  EXPECT_TRUE(absl::IsNotFound(store->GetJob("one").status()));
  sync = absl::OkStatus();
  EXPECT_TRUE(store->InsertJob(AJob(), AnEventOf(kQueued)).ok());
}

TEST_F(StoreFaultTest, AChangeThatDoesNotGetOntoTheDiskIsTakenBack) {
  absl::Status sync;
  StoreOptions options;
  options.on_sync = [&] { return sync; };
  auto store = *Store::Open(path_, options);
  const absl::Time early = absl::FromUnixMicros(1), late = absl::FromUnixMicros(2);
  ASSERT_TRUE(store->InsertJob(AJob(), AnEventOf(kQueued)).ok());
  ASSERT_TRUE(store->AddCordon({"n1", "first", early, CordonAuthor::kCheck}).ok());
  ASSERT_TRUE(store->PutSecrets({{"hub", "k1", "first", early, early}}).ok());
  ASSERT_TRUE(store->NoteRemoved({"one"}, {"logs", early}).ok());
  sync = absl::UnavailableError("the device fails");
  EXPECT_EQ(store->AddCordon({"n1", "second", late}), sync);
  EXPECT_EQ(store->AddCordon({"n2", "second", late}), sync);
  EXPECT_EQ(store->RemoveCordon("n1"), sync);
  EXPECT_TRUE(absl::IsNotFound(store->RemoveCordon("n2")));
  EXPECT_EQ(store->PutSecrets({{"hub", "k2", "second", late, late}, {"new", "k2", "", late, late}}),
            sync);
  EXPECT_EQ(store->PutSecrets({{"new", "k2", "", late, late}, {"new", "k3", "", late, late}}),
            sync);
  EXPECT_EQ(store->RemoveSecret("hub"), sync);
  EXPECT_TRUE(absl::IsNotFound(store->RemoveSecret("new")));
  EXPECT_EQ(store->NoteRemoved({"one"}, {"logs", late}), sync);
  EXPECT_EQ(store->NoteRemoved({"one"}, {"results", late}), sync);
  const std::vector<Cordon> cordons = *store->Cordons();
  ASSERT_EQ(cordons.size(), 1u);
  EXPECT_EQ(cordons[0].reason, "first");
  EXPECT_EQ(cordons[0].author, CordonAuthor::kCheck);
  const std::vector<SealedSecret> secrets = *store->Secrets();
  ASSERT_EQ(secrets.size(), 1u);
  EXPECT_EQ(secrets[0].sealed, "first");
  EXPECT_EQ(secrets[0].set, early);
  const std::vector<RemovedFiles> removed = *store->RemovedOf("one");
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].time, early);
}

TEST_F(StoreFaultTest, ADeferredWriteIsDurableOnceItWasAwaited) {
  int syncs = 0;
  StoreOptions options;
  options.on_sync = [&] {
    ++syncs;
    return absl::OkStatus();
  };
  auto store = *Store::Open(path_, options);
  const int64_t first = store->InsertJob(AJob(), AnEventOf(kQueued))->last.sequence;
  const int64_t before = store->LastDeferred();
  EXPECT_TRUE(store->AwaitDurable(before).ok());
  const int after_insert = syncs;
  ASSERT_TRUE(store->AppendEvent("one", first, AnEventOf(kPreparing), Durability::kDeferred).ok());
  EXPECT_EQ(syncs, after_insert);
  EXPECT_GT(store->LastDeferred(), before);
  EXPECT_TRUE(store->AwaitDurable(store->LastDeferred()).ok());
  EXPECT_EQ(syncs, after_insert + 1);
}

// The system may have dropped the pages of the log that it could not write, and tells that once.
TEST_F(StoreFaultTest, WhatAFailedSyncMayHaveLostIsWrittenAnew) {
  absl::Status sync;
  StoreOptions options;
  options.on_sync = [&] { return sync; };
  auto store = *Store::Open(path_, options);
  const int64_t first = store->InsertJob(AJob(), AnEventOf(kQueued))->last.sequence;
  ASSERT_TRUE(store->AppendEvent("one", first, AnEventOf(kPreparing), Durability::kDeferred).ok());
  sync = absl::UnavailableError("the device fails");
  EXPECT_EQ(store->AwaitDurable(store->LastDeferred()), sync);
  sync = absl::OkStatus();
  EXPECT_TRUE(store->AwaitDurable(store->LastDeferred()).ok());
  const std::filesystem::path file = directory_.path() / "without-its-log.db";
  std::filesystem::copy_file(path_, file);
  store.reset();
  path_ = file;
  EXPECT_EQ(Open()->GetJob("one")->last.state, kPreparing);
}

TEST_F(StoreFaultTest, ACrashAtAnyCommitLeavesAllOfAWriteOrNothing) {
  constexpr JobState kSteps[] = {kPreparing, kRunning, kFinalizing, kCompleted};
  Open().reset();  // migrations are not what is tested here
  for (int64_t crash_at = 1; crash_at <= 10; ++crash_at) {
    std::filesystem::remove(path_);
    Open().reset();
    const int status = InChild([&] {
      StoreOptions options;
      options.on_commit = [&](int64_t call) {
        if (call == crash_at) ::_exit(42);
      };
      auto store = Store::Open(path_, options);
      int64_t last = (*store)->InsertJob(AJob(), AnEventOf(kQueued))->last.sequence;
      for (const JobState state : kSteps) {
        const Durability durability =
            state == kCompleted ? Durability::kPowerLoss : Durability::kCrash;
        last = (*store)->AppendEvent("one", last, AnEventOf(state), durability)->sequence;
      }
    });
    ASSERT_EQ(WEXITSTATUS(status), 42) << crash_at;
    const size_t committed = static_cast<size_t>(crash_at) / 2;  // odd calls come before a commit
    auto store = Open();
    ASSERT_EQ(store->GetJob("one").ok(), committed > 0) << crash_at;
    if (committed == 0) continue;
    EXPECT_EQ(store->EventsOf("one")->size(), committed) << crash_at;
    if (committed > 1) {
      EXPECT_EQ(store->GetJob("one")->last.state, kSteps[committed - 2]);
    }
  }
}

TEST_F(StoreFaultTest, ACrashWhileTheFileIsMadeLeavesOneThatOpens) {
  for (int64_t crash_at = 1; crash_at <= 2; ++crash_at) {
    std::filesystem::remove(path_);
    const int status = InChild([&] {
      StoreOptions options;
      options.on_commit = [&](int64_t call) {
        if (call == crash_at) ::_exit(42);
      };
      Store::Open(path_, options).status().IgnoreError();
    });
    ASSERT_EQ(WEXITSTATUS(status), 42);
    EXPECT_TRUE(Open()->InsertJob(AJob(), AnEventOf(kQueued)).ok());
  }
}

TEST_F(StoreFaultTest, AFullDiskChangesNothingAndTheStoreWorksOnOnceThereIsSpace) {
  const auto small = directory_.path() / "small";
  ASSERT_TRUE(base::MakeDirectories(small).ok());
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  absl::Cleanup unmount = [&] { ::umount2(small.c_str(), MNT_DETACH); };
  path_ = small / "store.db";
  auto store = Open();
  ASSERT_NE(store, nullptr);
  int64_t last = store->InsertJob(AJob(), AnEventOf(kQueued))->last.sequence;
  ASSERT_TRUE(base::WriteFileAtomic(small / "filler", std::string(300'000, 'f')).ok());

  size_t written = 1;
  absl::Status failure;
  while (failure.ok()) {
    const auto event =
        store->AppendEvent("one", last, AnEventOf(kQueued, std::string(20'000, 'x')));
    failure = event.status();
    if (event.ok()) {
      last = event->sequence;
      ++written;
    }
    ASSERT_LT(written, 1000u);
  }
  EXPECT_EQ(failure.code(), absl::StatusCode::kResourceExhausted) << failure;
  EXPECT_THAT(std::string(failure.message()), HasSubstr(path_.string()));
  EXPECT_THAT(std::string(failure.message()), HasSubstr("free some space"));
  const auto kept = store->EventsOf("one");  // reading goes on
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->size(), written);
  EXPECT_FALSE(store->AppendEvent("one", last, AnEventOf(kQueued, std::string(20'000, 'x'))).ok());

  std::filesystem::remove(small / "filler");
  const auto after = store->AppendEvent("one", last, AnEventOf(kQueued, std::string(20'000, 'y')));
  ASSERT_TRUE(after.ok()) << after.status();
  store.reset();
  store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->EventsOf("one")->size(), written + 1);
}

TEST_F(StoreFaultTest, WhatMeetsAFullDiskIsWrittenOnceRoomIsMadeForIt) {
  const auto small = directory_.path() / "small";
  ASSERT_TRUE(base::MakeDirectories(small).ok());
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  absl::Cleanup unmount = [&] { ::umount2(small.c_str(), MNT_DETACH); };
  path_ = small / "store.db";
  uint64_t held = 600'000;
  ASSERT_TRUE(base::WriteFileAtomic(small / "reserve", std::string(held, 'r')).ok());
  StoreOptions options;
  options.on_full = [&] {
    if (held == 0) return false;
    held -= std::min<uint64_t>(held, 100'000);
    std::filesystem::resize_file(small / "reserve", held);
    return true;
  };
  auto store = Store::Open(path_, options).value();
  int64_t last = store->InsertJob(AJob(), AnEventOf(kQueued))->last.sequence;
  const auto filler = base::Open(small / "filler", O_WRONLY | O_CREAT);
  const std::string page(4096, 'f');
  while (::write(filler->get(), page.data(), page.size()) > 0) continue;
  size_t written = 0;
  while (true) {
    const auto event =
        store->AppendEvent("one", last, AnEventOf(kQueued, std::string(20'000, 'x')));
    if (!event.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(event.status())) << event.status();
      break;
    }
    last = event->sequence;
    ++written;
  }
  EXPECT_GE(written, 10u);
  EXPECT_EQ(held, 0u);
  EXPECT_EQ(store->EventsOf("one")->size(), written + 1);
  store.reset();
  EXPECT_EQ(Open()->EventsOf("one")->size(), written + 1);
}

TEST_F(StoreFaultTest, WhatAFailedSyncOfAKilledProcessMayHaveLostIsWrittenAnew) {
  ASSERT_EQ(WEXITSTATUS(InChild([&] {
              absl::Status sync;
              StoreOptions options;
              options.on_sync = [&] { return sync; };
              auto store = *Store::Open(path_, options);
              const int64_t first = store->InsertJob(AJob(), AnEventOf(kQueued))->last.sequence;
              const auto next =
                  store->AppendEvent("one", first, AnEventOf(kPreparing), Durability::kDeferred);
              sync = absl::UnavailableError("the device fails");
              const bool is_lost = !store->AwaitDurable(store->LastDeferred()).ok();
              ::_exit(next.ok() && is_lost ? 42 : 1);  // closes nothing
            })),
            42);
  auto store = Open();
  ASSERT_NE(store, nullptr);
  ASSERT_TRUE(store->AwaitDurable(store->LastDeferred()).ok());
  const std::filesystem::path file = directory_.path() / "without-its-log.db";
  std::filesystem::copy_file(path_, file);
  store.reset();
  path_ = file;
  const auto job = Open()->GetJob("one");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->last.state, kPreparing);
}

// The disk fails still when the next process comes.
TEST_F(StoreFaultTest, NothingIsConcludedFromALogThatAKilledProcessMayHaveLost) {
  InChild([&] {
    auto store = Open();
    store->InsertJob(AJob(), AnEventOf(kQueued)).status().IgnoreError();
    ::_exit(1);  // closes nothing
  });
  absl::Status sync = absl::UnavailableError("the device fails");
  StoreOptions options;
  options.on_sync = [&] { return sync; };
  auto store = *Store::Open(path_, options);
  EXPECT_EQ(store->AddCordon({.node = "n1", .reason = "r"}), sync) << "it lies behind that log";
  EXPECT_EQ(store->AwaitDurable(store->LastDeferred()), sync);
  sync = absl::OkStatus();
  EXPECT_TRUE(store->AddCordon({.node = "n2", .reason = "r"}).ok());
}

// The log's content then goes into a file that has to grow for it.
TEST_F(StoreFaultTest, WhatAFailedSyncMayHaveLostIsWrittenAnewOnceRoomIsMadeForIt) {
  const auto small = directory_.path() / "small";
  ASSERT_TRUE(base::MakeDirectories(small).ok());
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  absl::Cleanup unmount = [&] { ::umount2(small.c_str(), MNT_DETACH); };
  path_ = small / "store.db";
  int parts = 8;
  absl::Status sync;
  StoreOptions options;
  options.on_sync = [&] { return sync; };
  options.on_full = [&] {
    return parts > 0 && std::filesystem::remove(small / absl::StrCat("part-", parts--));
  };
  auto store = Store::Open(path_, options).value();
  int64_t last = store->InsertJob(AJob(), AnEventOf(kQueued))->last.sequence;
  for (int i = 0; i < 20; ++i) {
    const Event event = AnEventOf(kQueued, std::string(20'000, 'x'));
    last = store->AppendEvent("one", last, event, Durability::kDeferred)->sequence;
  }
  for (int i = 1; i <= parts; ++i) {
    ASSERT_TRUE(
        base::WriteFileAtomic(small / absl::StrCat("part-", i), std::string(80'000, 'r')).ok());
  }
  const auto filler = base::Open(small / "filler", O_WRONLY | O_CREAT);
  const std::string page(4096, 'f');
  while (::write(filler->get(), page.data(), page.size()) > 0) continue;
  sync = absl::UnavailableError("the device fails");
  EXPECT_EQ(store->AwaitDurable(store->LastDeferred()), sync);
  sync = absl::OkStatus();
  ASSERT_EQ(store->AwaitDurable(store->LastDeferred()), absl::OkStatus());
  EXPECT_LT(parts, 8) << "the disk was full";
  const std::filesystem::path file = directory_.path() / "without-its-log.db";
  std::filesystem::copy_file(path_, file);
  path_ = file;
  EXPECT_EQ(Open()->GetJob("one")->last.sequence, last);
}

TEST_F(StoreFaultTest, OneThatWasClosedOpensOnAFullDiskAndTakesMoreOnceThereIsSpace) {
  const auto small = directory_.path() / "small";
  ASSERT_TRUE(base::MakeDirectories(small).ok());
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "may not mount a small tmpfs";
  }
  absl::Cleanup unmount = [&] { ::umount2(small.c_str(), MNT_DETACH); };
  path_ = small / "store.db";
  const int64_t last = Open()->InsertJob(AJob(), AnEventOf(kQueued))->last.sequence;
  {
    auto filler = base::Open(small / "filler", O_WRONLY | O_CREAT);
    ASSERT_TRUE(filler.ok());
    const std::string page(4096, 'f');
    while (::write(filler->get(), page.data(), page.size()) > 0) continue;
  }
  auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->GetJob("one")->last.sequence, last);
  EXPECT_TRUE(absl::IsResourceExhausted(
      store->AppendEvent("one", last, AnEventOf(kQueued, std::string(20'000, 'x'))).status()));
  std::filesystem::remove(small / "filler");
  EXPECT_EQ(store->AppendEvent("one", last, AnEventOf(kQueued)).status(), absl::OkStatus());
}

TEST_F(StoreFaultTest, DamageIsFoundAtTheStartAfterAnEndWithoutOrderAndSaysWhatToDo) {
  Open()->InsertJob(AJob(), AnEventOf(kQueued, std::string(50'000, 'x'))).status().IgnoreError();
  InChild([&] {
    auto store = Open();
    store->AddCordon({"n1", "for its log", absl::UnixEpoch()}).IgnoreError();
    ::_exit(1);  // closes nothing
  });
  Damage(4096, 8192);  // pages of which the log has none
  const absl::Status status = ErrorOfOpening();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("restore it from a backup"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_.string()));
}

TEST_F(StoreFaultTest, DamageOfAFileThatWasClosedIsFoundWhenItIsRead) {
  Open()->InsertJob(AJob(), AnEventOf(kQueued, std::string(50'000, 'x'))).status().IgnoreError();
  Damage(4096, 8192);  // closing has moved everything from the log to the file
  const auto store = Store::Open(path_);
  ASSERT_TRUE(store.ok()) << store.status();  // whose start does not read all of history
  const absl::Status status = (*store)->GetJob("one").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("restore it from a backup"));
}

TEST_F(StoreFaultTest, AFileThatIsNoDatabaseIsDataLossAndStaysAsItIs) {
  const std::string text(5000, 'q');
  ASSERT_TRUE(base::WriteFileAtomic(path_, text).ok());
  EXPECT_EQ(ErrorOfOpening().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*base::ReadFile(path_), text);
}

TEST_F(StoreFaultTest, RefusesTheDatabaseOfAnotherProgram) {
  SQLite::Database(path_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE theirs (x)");
  EXPECT_EQ(ErrorOfOpening().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(ErrorOfOpening().message()), HasSubstr("another program"));
}

TEST_F(StoreFaultTest, RefusesALayoutThatANewerTuttiWrote) {
  Open().reset();
  SQLite::Database(path_.string(), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
  const absl::Status status = ErrorOfOpening();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("newer tutti (layout 99"));
}

TEST_F(StoreFaultTest, SaysThatAnotherProgramHoldsTheLock) {
  Open().reset();
  SQLite::Database holder(path_.string(), SQLite::OPEN_READWRITE);
  holder.exec("BEGIN IMMEDIATE");
  StoreOptions options;
  options.busy_timeout = absl::Milliseconds(20);
  const auto inserted = Open(options)->InsertJob(AJob(), AnEventOf(kQueued));
  EXPECT_EQ(inserted.status().code(), absl::StatusCode::kUnavailable) << inserted.status();
  EXPECT_THAT(std::string(inserted.status().message()), HasSubstr("another program holds it"));
}

TEST_F(StoreFaultTest, AFolderThatIsNotThereIsNamed) {
  const auto store = Store::Open(directory_.path() / "no" / "store.db");
  EXPECT_EQ(store.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("no/store.db"));
}

TEST_F(StoreFaultTest, AMigrationThatFailsLeavesTheLayoutItBeganWith) {
  const auto open = [&](const Migrations& migrations) {
    return Database::Open(path_, migrations, {absl::Seconds(1), nullptr});
  };
  const auto names = [](Database& database) {
    std::string joined;
    EXPECT_TRUE(database
                    .Read([&](SQLite::Database& sqlite) {
                      joined = sqlite
                                   .execAndGet(
                                       "SELECT group_concat(name || (SELECT user_version "
                                       "FROM pragma_user_version)) FROM sqlite_schema")
                                   .getString();
                      return absl::OkStatus();
                    })
                    .ok());
    return joined;
  };
  ASSERT_TRUE(open({"CREATE TABLE a (x)"}).ok());
  EXPECT_FALSE(open({"", "CREATE TABLE b (x); CREATE TABLE oops oops"}).ok());
  EXPECT_EQ(names(**open({""})), "a1");
  EXPECT_EQ(names(**open({"", "CREATE TABLE b (x)"})), "a2,b2");
}

// A store as the layout before job_states had it: every third job runs for the second time, the
// others have completed; every tenth is a child.
class OldStoreTest : public StoreFaultTest {
 protected:
  static Migrations OldLayout() {
    return {AllMigrations().begin(), AllMigrations().begin() + kOldLayout};
  }
  void MakeOldStore(int jobs) {
    auto database =
        Database::Open(path_, OldLayout(), {absl::Seconds(5), nullptr, nullptr, nullptr});
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status written = (*database)->Write([&](SqliteConnection& sqlite) {
      sqlite.exec(absl::StrCat(R"sql(
        CREATE TEMP TABLE n AS WITH RECURSIVE c (n) AS (
          SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < )sql",
                               jobs, R"sql() SELECT n FROM c;
        INSERT INTO jobs (id, created_us, spec, file_text, snapshot, job_token, warnings, parent)
          SELECT 'j' || n, n, '{"command":"true"}', '', '', '', '[]', iif(n % 10 = 0, 'j1', '')
          FROM n;
        CREATE TEMP TABLE steps (number INTEGER, state TEXT, again INTEGER);
        INSERT INTO steps VALUES (1, 'Queued', 0), (2, 'Running', 0), (3, 'Queued', 1),
          (4, 'Running', 1), (5, 'Running', 1), (6, 'Finalizing', 2), (7, 'Completed', 2);
        INSERT INTO events (job_id, time_us, state, reason, detail)
          SELECT 'j' || n, 10 * n + number, state, '', '{}' FROM n, steps
          WHERE again = 0 OR (again = 1) = (n % 3 = 0) ORDER BY number, n;
        DROP TABLE steps; DROP TABLE n;
      )sql"));
      return absl::OkStatus();
    });
    ASSERT_TRUE(written.ok()) << written;
  }
  // Returns what SQL says of the file as it lies there.
  int64_t Ask(const std::string& sql) {
    return SQLite::Database(path_.string(), SQLite::OPEN_READWRITE).execAndGet(sql).getInt64();
  }
  // Expects all of the new layout, or none of it.
  void ExpectOneLayout(int64_t jobs) {
    const int64_t layout = Ask("PRAGMA user_version");
    const int64_t tables = Ask("SELECT count(*) FROM sqlite_schema WHERE name = 'job_states'");
    ASSERT_EQ(tables, layout > kOldLayout ? 1 : 0);
    EXPECT_EQ(Ask("SELECT count(*) FROM events"), Ask("SELECT max(sequence) FROM events"));
    if (tables == 1) {
      EXPECT_EQ(Ask("SELECT count(*) FROM job_states"), jobs);
    }
  }

  static constexpr int kOldLayout = 4;
};

TEST_F(OldStoreTest, StatesFollowFromTheEventsOfTheLayoutBefore) {
  MakeOldStore(30);
  auto store = Open();
  ASSERT_NE(store, nullptr);
  EXPECT_EQ(store->NonTerminalJobs()->size(), 10u);
  EXPECT_EQ(store->ListJobs({.states = {kCompleted}})->size(), 18u);  // the others are children
  EXPECT_EQ(store->ChildrenOf("j1")->size(), 3u);
  const JobRecord again = store->GetJob("j3").value();
  EXPECT_EQ(again.last.state, kRunning);
  EXPECT_EQ(again.started, absl::FromUnixMicros(34));
  EXPECT_EQ(store->GetJob("j4")->started, absl::FromUnixMicros(42));
  const auto next = store->AppendEvent("j3", again.last.sequence, AnEventOf(kFailed));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(store->NonTerminalJobs()->size(), 9u);
}

TEST_F(OldStoreTest, ACrashAroundItsCommitLeavesOneLayout) {
  for (const int64_t crash_at : {1, 2}) {
    std::filesystem::remove(path_);
    MakeOldStore(30);
    const int status = InChild([&] {
      StoreOptions options;
      options.on_commit = [&](int64_t call) {
        if (call == crash_at) ::_exit(42);
      };
      Store::Open(path_, options).status().IgnoreError();
    });
    ASSERT_EQ(WEXITSTATUS(status), 42);
    ExpectOneLayout(30);
    EXPECT_EQ(Open()->NonTerminalJobs()->size(), 10u) << crash_at;
  }
}

// Pages that do not fit into memory go to the log long before the commit.
TEST_F(OldStoreTest, AKillWhileItsPagesAreWrittenLeavesOneLayout) {
  constexpr int kJobs = 50'000;
  MakeOldStore(kJobs);
  for (const rlim_t most : {50'000, 1'000'000, 3'000'000}) {
    const int status = InChild([&] {
      // The kernel kills at the write beyond it.
      const rlimit of_files = {most, most}, of_cores = {0, 0};
      ::setrlimit(RLIMIT_CORE, &of_cores);
      ::setrlimit(RLIMIT_FSIZE, &of_files);
      Store::Open(path_).status().IgnoreError();
    });
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << status;
    EXPECT_GE(std::filesystem::file_size(path_.string() + "-wal"), most - 5000);
    ExpectOneLayout(kJobs);
  }
  EXPECT_EQ(Open()->ListJobs({.states = {kRunning}, .limit = kJobs})->size(), 15'000u);
}

}  // namespace
}  // namespace tutti::store
