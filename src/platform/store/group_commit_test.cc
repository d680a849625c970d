#include "platform/store/group_commit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
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
};

TEST_F(GroupCommitTest, WritesThatGatherShareACommit) {
  GroupCommit writes(database_.get(), &mutex_);
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
  GroupCommit writes(database_.get(), &mutex_);
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
  GroupCommit writes(database_.get(), &mutex_);
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

}  // namespace
}  // namespace tutti::store
