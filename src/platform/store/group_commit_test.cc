#include "platform/store/group_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::store {
namespace {

class GroupCommitTest : public ::testing::Test {
 protected:
  GroupCommitTest() {
    DatabaseOptions options{.busy_timeout = absl::Seconds(5),
                            .on_commit = [this](int64_t) { ++commit_calls_; }};
    database_ = *Database::Open(folder_.path() / "x.db", {"CREATE TABLE numbers (n INTEGER)"},
                                std::move(options));
  }
  static absl::Status Insert(SQLite::Database& sqlite, int n) {
    sqlite.exec(absl::StrCat("INSERT INTO numbers VALUES (", n, ")"));
    return absl::OkStatus();
  }
  int Count() {
    int count = -1;
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(database_
                    ->Read([&](SQLite::Database& sqlite) {
                      count = sqlite.execAndGet("SELECT count(*) FROM numbers").getInt();
                      return absl::OkStatus();
                    })
                    .ok());
    return count;
  }

  const base::TemporaryDirectory folder_;
  std::atomic<int> commit_calls_ = 0;
  std::unique_ptr<Database> database_;
  absl::Mutex mutex_;
  DurableMark mark_{[this] { return database_->Sync(); }};
};

TEST_F(GroupCommitTest, WritesThatGatherShareACommit) {
  GroupCommit writes(database_.get(), &mutex_, &mark_);
  commit_calls_ = 0;
  std::vector<std::thread> writers;
  std::atomic<int> there = 0;
  mutex_.Lock();  // holds the first one up, and the others gather behind it
  for (int n = 0; n < 16; ++n) {
    writers.emplace_back([&, n] {
      ++there;
      EXPECT_TRUE(writes.Write([n](SQLite::Database& sqlite) { return Insert(sqlite, n); }).ok());
    });
  }
  base::AwaitPatiently(absl::Seconds(30), [&] { return there == 16; });
  mutex_.Unlock();
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Count(), 16);
  EXPECT_LE(commit_calls_, 2 * 16);
}

TEST_F(GroupCommitTest, AWriteThatFailsIsUndoneAlone) {
  GroupCommit writes(database_.get(), &mutex_, &mark_);
  std::vector<std::thread> writers;
  std::atomic<int> failed = 0;
  for (int n = 0; n < 8; ++n) {
    writers.emplace_back([&, n] {
      const absl::Status status = writes.Write([n](SQLite::Database& sqlite) {
        const absl::Status inserted = Insert(sqlite, n);
        return n % 2 == 0 ? inserted : absl::AbortedError("not this one");
      });
      EXPECT_EQ(status.code(), n % 2 == 0 ? absl::StatusCode::kOk : absl::StatusCode::kAborted);
      if (!status.ok()) ++failed;
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failed, 4);
  EXPECT_EQ(Count(), 4);
}

TEST_F(GroupCommitTest, AnErrorOfTheDatabaseIsTheWritersOwn) {
  GroupCommit writes(database_.get(), &mutex_, &mark_);
  std::vector<std::thread> writers;
  for (int n = 0; n < 8; ++n) {
    writers.emplace_back([&, n] {
      const absl::Status status = writes.Write([n](SQLite::Database& sqlite) {
        if (n == 3) sqlite.exec("INSERT INTO no_such_table VALUES (1)");
        return Insert(sqlite, n);
      });
      EXPECT_EQ(status.ok(), n != 3) << status;
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Count(), 7);
}

TEST_F(GroupCommitTest, WhatABodyThrowsIsItsOwnErrorAndLaterWritesGoOn) {
  GroupCommit writes(database_.get(), &mutex_, &mark_);
  EXPECT_EQ(writes.Write([](SqliteConnection&) -> absl::Status { throw std::bad_alloc(); }).code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(writes.Write([](SqliteConnection&) -> absl::Status { throw 42; }).code(),
            absl::StatusCode::kInternal);
  EXPECT_TRUE(writes.Write([](SqliteConnection& sqlite) { return Insert(sqlite, 1); }).ok());
  EXPECT_EQ(Count(), 1);
}

TEST_F(GroupCommitTest, OneOfAGroupThatThrowsIsUndoneAlone) {
  std::vector<absl::Status> statuses;
  const std::function<absl::Status(SqliteConnection&)> good = [](SqliteConnection& sqlite) {
    return Insert(sqlite, 1);
  };
  const std::function<absl::Status(SqliteConnection&)> bad =
      [](SqliteConnection& sqlite) -> absl::Status {
    Insert(sqlite, 2).IgnoreError();
    throw std::runtime_error("no name for it");
  };
  ASSERT_TRUE(database_->WriteTogether({&good, &bad, &good}, statuses).ok());
  ASSERT_EQ(statuses.size(), 3u);
  EXPECT_TRUE(statuses[0].ok() && statuses[2].ok());
  EXPECT_THAT(std::string(statuses[1].message()), ::testing::HasSubstr("no name for it"));
  EXPECT_EQ(Count(), 2);
}

TEST_F(GroupCommitTest, CountsWritesAndWhatTheDatabaseCouldNotDo) {
  GroupCommit writes(database_.get(), &mutex_, &mark_);
  EXPECT_TRUE(writes.Write([](SQLite::Database& sqlite) { return Insert(sqlite, 1); }).ok());
  EXPECT_FALSE(writes.Write([](SQLite::Database&) { return absl::NotFoundError("none"); }).ok());
  EXPECT_FALSE(writes
                   .Write([](SQLite::Database& sqlite) {
                     sqlite.exec("no SQL");
                     return absl::OkStatus();
                   })
                   .ok());
  WriteCounts counts;
  writes.Count(counts);
  EXPECT_EQ(counts.transactions, 3);
  EXPECT_EQ(counts.failed, 1) << "that there is no such job is no failure of the store";
  EXPECT_EQ(counts.waiting, 0);
  int64_t all = 0;
  for (const int64_t count : counts.times.counts()) all += count;
  EXPECT_EQ(all, 3);
}

}  // namespace
}  // namespace tutti::store
