#include "platform/cache/node_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/process/kill_at_system_call_for_tests.h"
#include "base/process/waiting.h"
#include "platform/cache/fetched_home.h"

namespace tutti::cache {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Killing a process loses nothing that was written, synced or not: the tests need no disk.
struct InMemory {
  InMemory() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", /*overwrite=*/1);
  }
};

class NodeCacheTest : public ::testing::Test {
 protected:
  static std::string Key(int i) { return std::string(kKeyDigits - 1, 'a') + std::to_string(i); }
  FetchedHome HomeOf(int i) const { return {cache_.PathOf(Key(i)), "train", false}; }

  // Writes what a fetch leaves before it is kept.
  void Fill(int i) const {
    for (const auto& [path, text] : kContent) {
      const fs::path file = HomeOf(i).part() / path;
      ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
      ASSERT_TRUE(base::ReplaceFile(file, text).ok());
    }
    ASSERT_TRUE(base::ReplaceFile(HomeOf(i).part() / ".tutti-objects", "{}").ok());
  }
  // Data that were last used that long after the others of the test.
  void Put(int i, int used) const {
    ASSERT_TRUE(cache_.Pin(Key(i)).ok());
    Fill(i);
    ASSERT_TRUE(HomeOf(i).Keep().ok());
    const timespec times[2] = {{used, 0}, {used, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, cache_.PathOf(Key(i)).c_str(), times, 0), 0);
  }
  bool IsWhole(int i) const {
    for (const auto& [path, text] : kContent) {
      if (base::ReadFile(HomeOf(i).data() / path).value_or("") != text) return false;
    }
    return true;
  }
  std::vector<std::string> MakeRoom(const RoomGoal& room) const {
    std::vector<std::string> keys;
    const auto gone = cache_.MakeRoom(room, cancelled_);
    EXPECT_TRUE(gone.ok()) << gone.status();
    if (!gone.ok()) return keys;
    for (const CachedData& data : *gone) keys.push_back(data.key);
    return keys;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  static constexpr std::pair<const char*, const char*> kContent[] = {{"a", "one"}, {"b/c", "two"}};
  const InMemory in_memory_;  // before the folder that it decides about
  const base::TemporaryDirectory folder_;
  const NodeCache cache_{folder_.path()};
  std::atomic<bool> cancelled_ = false;
};

TEST_F(NodeCacheTest, WhatIsPinnedStaysUntilTheLastPinIsGone) {
  Put(1, 1000), Put(2, 2000);
  auto one = cache_.Pin(Key(1)), other = cache_.Pin(Key(1));
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_TRUE(cache_.IsPinned(Key(1)));
  EXPECT_THAT(MakeRoom({.most_bytes = 0}), ElementsAre(Key(2)));
  one->reset();
  EXPECT_TRUE(cache_.IsPinned(Key(1)));
  other->reset();
  EXPECT_FALSE(cache_.IsPinned(Key(1)));
  EXPECT_TRUE(IsWhole(1));
  EXPECT_THAT(MakeRoom({.most_bytes = 0}), ElementsAre(Key(1)));
  EXPECT_FALSE(fs::exists(cache_.PathOf(Key(1))));
}

TEST_F(NodeCacheTest, APinGoesWithTheProcessThatHeldIt) {
  Put(1, 1000);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto pin = NodeCache(folder_.path()).Pin(Key(1));
    if (::write(ready[1], pin.ok() ? "y" : "n", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char answer = 0;
  ASSERT_EQ(::read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_THAT(MakeRoom({.most_bytes = 0}), IsEmpty());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(MakeRoom({.most_bytes = 0}), ElementsAre(Key(1)));
  ::close(ready[0]), ::close(ready[1]);
}

TEST_F(NodeCacheTest, WhatAVersionWithoutPinsHasTakenStaysWhoeverTakesItToo) {
  Fill(1);
  ASSERT_TRUE(HomeOf(1).Keep().ok());  // as that version did
  Put(2, 2000);
  { ASSERT_TRUE(cache_.Pin(Key(1)).ok()); }
  { ASSERT_TRUE(cache_.Pin(Key(2)).ok()); }
  EXPECT_FALSE(cache_.IsPinned(Key(1)));
  EXPECT_THAT(MakeRoom({.most_bytes = 0}), ElementsAre(Key(2)));
  EXPECT_TRUE(cache_.Remove({Key(1)}, cancelled_)->empty());
  EXPECT_TRUE(IsWhole(1));
  const fs::path note = folder_.path() / "pins" / absl::StrCat(Key(1), ".unpinned");
  const timespec then = absl::ToTimespec(absl::Now() - kLongestWithoutPin - absl::Hours(1));
  const timespec times[2] = {then, then};
  ASSERT_EQ(::utimensat(AT_FDCWD, note.c_str(), times, 0), 0);
  { ASSERT_TRUE(cache_.Pin(Key(1)).ok()); }
  EXPECT_THAT(MakeRoom({.most_bytes = 0}), ElementsAre(Key(1))) << "its job has ended";
  EXPECT_FALSE(fs::exists(note));
}

TEST_F(NodeCacheTest, APinMarksTheDataAsUsed) {
  Put(1, 1000), Put(2, 2000);
  ASSERT_TRUE(cache_.Pin(Key(1)).ok());
  EXPECT_EQ(cache_.List().back().key, Key(1));
  EXPECT_THAT(MakeRoom({.freed_bytes = 1 << 20}), IsEmpty());
  EXPECT_THAT(MakeRoom({.most_bytes = cache_.List()[0].bytes}), ElementsAre(Key(2)));
}

TEST_F(NodeCacheTest, WhatSomebodyFetchesOrLooksAtStays) {
  Put(1, 1000), Put(2, 2000);
  const auto lock = base::LockFile(cache_.LockOf(Key(1)), cancelled_);
  ASSERT_TRUE(lock.ok());
  EXPECT_THAT(MakeRoom({.most_bytes = 0}), ElementsAre(Key(2))) << "another goes in its place";
  EXPECT_TRUE(IsWhole(1));
}

TEST_F(NodeCacheTest, NamedKeysAreRemovedUnlessTheyArePinned) {
  Put(1, 1000), Put(2, 2000), Put(3, 3000);
  const auto pin = cache_.Pin(Key(2));
  ASSERT_TRUE(pin.ok());
  const auto removed = cache_.Remove({Key(1), Key(2)}, cancelled_);
  ASSERT_TRUE(removed.ok()) << removed.status();
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ(removed->front().key, Key(1));
  EXPECT_TRUE(IsWhole(2) && IsWhole(3));
}

TEST_F(NodeCacheTest, ThePlaceIsNotedOnce) {
  Put(1, 1000);
  cache_.NoteOrigin(Key(1), {"bucket \"a\""});
  cache_.NoteOrigin(Key(1), {"bucket \"b\""});
  EXPECT_EQ(cache_.List()[0].place, "bucket \"a\"");
}

TEST_F(NodeCacheTest, DataAreFoundByTheirStoreAndFolder) {
  Put(1, 1000), Put(2, 2000), Put(3, 3000), Put(4, 4000);
  cache_.NoteOrigin(Key(1), {"", "s3 sets", "train"});
  cache_.NoteOrigin(Key(2), {"", "s3 sets", "train/x"});
  cache_.NoteOrigin(Key(3), {"", "s3 others", "train"});
  cache_.NoteOrigin(Key(4), {"", "s3 sets", "training"});
  const std::pair one(Key(1), "train"s), two(Key(2), "train/x"s), four(Key(4), "training"s);
  EXPECT_THAT(cache_.KeysOf("s3 sets", "train"), UnorderedElementsAre(one, two));
  EXPECT_THAT(cache_.KeysOf("s3 sets", "train/x/y"), UnorderedElementsAre(one, two));
  EXPECT_THAT(cache_.KeysOf("s3 sets", "train/z"), ElementsAre(one));
  EXPECT_THAT(cache_.KeysOf("s3 sets", ""), UnorderedElementsAre(one, two, four));
  ASSERT_TRUE(cache_.Pin(Key(1)).ok());
  EXPECT_EQ(cache_.KeysOf("s3 sets", "train").front(), one) << "which was used last";
}

TEST_F(NodeCacheTest, WhoeverWaitsForRoomCanBeStopped) {
  const auto other = base::LockFile(folder_.path() / "room.lock", cancelled_);
  ASSERT_TRUE(other.ok());
  cancelled_ = true;
  EXPECT_TRUE(absl::IsCancelled(cache_.MakeRoom({.most_bytes = 0}, cancelled_).status()));
}

TEST_F(NodeCacheTest, AKillAtAnySystemCallOfMakeRoomLeavesDataWholeOrGone) {
  int kills = 0;
  for (bool ended = false; !ended; ++kills) {
    SCOPED_TRACE(testing::Message() << "killed at stop " << kills);
    ASSERT_TRUE(base::RemoveTree(cache_.PathOf(Key(1))).ok());
    ASSERT_TRUE(base::RemoveTree(cache_.PathOf(Key(2))).ok());
    Put(1, 1000), Put(2, 2000);
    const uint64_t bytes = cache_.List()[1].bytes;
    ended = base::KillAtSystemCall(
        kills, [&] { return cache_.MakeRoom({.most_bytes = bytes}, cancelled_).ok(); });
    EXPECT_TRUE(IsWhole(1) || !fs::exists(cache_.PathOf(Key(1))));
    EXPECT_TRUE(IsWhole(2)) << "which is not to go";
    MakeRoom({.most_bytes = bytes});  // goes on
    EXPECT_FALSE(fs::exists(cache_.PathOf(Key(1))));
    for (const std::string& name : Names()) EXPECT_NE(name.substr(0, 2), ".e") << name;
    // And the data can be had again.
    Put(1, 3000);
    EXPECT_TRUE(IsWhole(1));
    ASSERT_LT(kills, 3000);
  }
  EXPECT_GT(kills, 50);
}

TEST_F(NodeCacheTest, AKillAtAnySystemCallOfTakingDataLosesNothingThatHasCome) {
  int kills = 0;
  for (bool ended = false; !ended; ++kills) {
    SCOPED_TRACE(testing::Message() << "killed at stop " << kills);
    ASSERT_TRUE(base::RemoveTree(cache_.PathOf(Key(1))).ok());
    Fill(1);
    const auto take = [&] {
      const auto lock = base::LockFile(cache_.LockOf(Key(1)), cancelled_);
      const auto pin = cache_.Pin(Key(1));
      cache_.NoteOrigin(Key(1), {"bucket \"a\""});
      const auto is_there = HomeOf(1).IsThere();
      if (!lock.ok() || !pin.ok() || !is_there.ok()) return false;
      return *is_there || HomeOf(1).Keep().ok();
    };
    ended = base::KillAtSystemCall(kills, take);
    EXPECT_FALSE(cache_.IsPinned(Key(1))) << "the pin went with the process";
    EXPECT_TRUE(!fs::exists(HomeOf(1).data()) || IsWhole(1)) << "never a part of it";
    ASSERT_TRUE(take());
    EXPECT_TRUE(IsWhole(1));
    EXPECT_EQ(cache_.List()[0].state, DataState::kWhole);
    EXPECT_EQ(cache_.List()[0].place, "bucket \"a\"");
    struct stat info = {};
    ASSERT_EQ(::stat((HomeOf(1).data() / "b/c").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0222, 0u);
    ASSERT_LT(kills, 3000);
  }
  EXPECT_GT(kills, 50);
}

}  // namespace
}  // namespace tutti::cache
