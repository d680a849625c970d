#include "platform/store/durable_mark.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tutti::store {
namespace {

TEST(DurableMark, WhatIsDurableIsNotSyncedAgain) {
  int syncs = 0;
  DurableMark mark([&] {
    ++syncs;
    return absl::OkStatus();
  });
  EXPECT_TRUE(mark.AwaitAll().ok());
  EXPECT_EQ(syncs, 0) << "nothing was written";
  const int64_t first = mark.BeginWrite(Durability::kDeferred);
  const int64_t second = mark.BeginWrite(Durability::kCrash);
  mark.EndWrites();
  EXPECT_EQ(mark.last_deferred(), first);
  EXPECT_TRUE(mark.Await(first).ok());
  EXPECT_TRUE(mark.Await(second).ok()) << "it lay before the same sync";
  EXPECT_EQ(syncs, 1);
}

TEST(DurableMark, KnowsWhichEventsAreDurable) {
  DurableMark mark([] { return absl::OkStatus(); });
  const int64_t first = mark.BeginWrite(Durability::kDeferred);
  mark.EndWrites(/*last_event=*/7);
  EXPECT_FALSE(mark.HasEvent(7));
  EXPECT_TRUE(mark.Await(first).ok());
  EXPECT_TRUE(mark.HasEvent(7));
  // One that is undone has no event: its number is given again.
  const int64_t undone = mark.BeginWrite(Durability::kDeferred);
  mark.EndWrites();
  EXPECT_TRUE(mark.Await(undone).ok());
  EXPECT_FALSE(mark.HasEvent(8));
}

TEST(DurableMark, AFailureIsToldAndTriedAgain) {
  absl::Status answer = absl::UnavailableError("the device fails");
  DurableMark mark([&] { return answer; });
  const int64_t number = mark.BeginWrite(Durability::kDeferred);
  mark.EndWrites();
  EXPECT_EQ(mark.Await(number), answer);
  EXPECT_EQ(mark.Await(number), answer);
  answer = absl::OkStatus();
  EXPECT_TRUE(mark.Await(number).ok());
}

// A write whose number is known but which is not committed yet would be missed by a sync.
TEST(DurableMark, WaitsForTheCommitBeforeItSyncs) {
  std::atomic<bool> committed = false;
  bool was_committed = false;
  DurableMark mark([&] {
    was_committed = committed;
    return absl::OkStatus();
  });
  const int64_t number = mark.BeginWrite(Durability::kDeferred);
  std::thread reader([&] { EXPECT_TRUE(mark.Await(number).ok()); });
  committed = true;
  mark.EndWrites();
  reader.join();
  EXPECT_TRUE(was_committed);
}

TEST(DurableMark, ThoseWhoWaitShareASyncAndWritesGoOn) {
  absl::Mutex mutex;
  int begun = 0;
  bool may_end = false;
  DurableMark mark([&] {
    absl::MutexLock lock(&mutex);
    ++begun;
    mutex.Await(absl::Condition(&may_end));
    return absl::OkStatus();
  });
  const int64_t first = mark.BeginWrite(Durability::kDeferred);
  mark.EndWrites();
  std::thread one([&] { EXPECT_TRUE(mark.Await(first).ok()); });
  {
    const auto is_begun = [&] { return begun == 1; };
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&is_begun));
  }
  std::vector<std::thread> others;
  for (int i = 0; i < 8; ++i) {
    const int64_t number = mark.BeginWrite(Durability::kDeferred);  // while the disk is waited for
    mark.EndWrites();
    others.emplace_back([&mark, number] { EXPECT_TRUE(mark.Await(number).ok()); });
  }
  {
    absl::MutexLock lock(&mutex);
    may_end = true;
  }
  one.join();
  for (std::thread& other : others) other.join();
  EXPECT_EQ(begun, 2) << "all eight were committed before the second sync began";
}

}  // namespace
}  // namespace tutti::store
