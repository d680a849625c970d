#include "platform/cache/cache_census.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::cache {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CensusTest : public ::testing::Test {
 protected:
  // Three versions, the first of which was used the longest time ago.
  static std::string Key(int i) { return std::string(kKeyDigits - 1, 'a') + std::to_string(i); }
  void Put(int i, const std::string& name, size_t bytes) {
    const fs::path file = folder_.path() / Key(i) / "content" / name;
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::ReplaceFile(file, std::string(bytes, 'x')).ok());
  }
  void Use(int i, int seconds) {
    ASSERT_TRUE(base::MakeDirectories(folder_.path() / "pins").ok());
    ASSERT_TRUE(base::ReplaceFile(folder_.path() / "pins" / Key(i), "").ok());
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (folder_.path() / Key(i)).c_str(), times, 0), 0);
  }
  std::vector<std::string> Going(const RoomGoal& room) const {
    std::vector<std::string> keys;
    for (const CachedData& data : Census::Of(folder_.path()).ToRemove(room)) {
      keys.push_back(data.key);
    }
    return keys;
  }

  const base::TemporaryDirectory folder_;
};

TEST_F(CensusTest, CountsEachFileOnceAndTellsWhatAVersionHasAlone) {
  Put(1, "a", 100), Put(1, "b", 10), Put(2, "c", 1);
  fs::create_hard_link(folder_.path() / Key(1) / "content/a",
                       folder_.path() / Key(2) / "content/a");
  Use(1, 1000), Use(2, 2000);
  const Census census = Census::Of(folder_.path());
  ASSERT_EQ(census.list().size(), 2u);
  EXPECT_EQ(census.bytes(), 111u);
  EXPECT_EQ(census.list()[0].key, Key(1));
  EXPECT_EQ(census.list()[0].bytes, 110u);
  EXPECT_EQ(census.list()[0].own_bytes, 10u);
  EXPECT_EQ(census.list()[1].bytes, 101u);
  EXPECT_EQ(census.list()[1].own_bytes, 1u);
  EXPECT_EQ(census.list()[1].files, 2u);
  EXPECT_EQ(census.list()[1].last_use, absl::FromUnixSeconds(2000));
}

TEST_F(CensusTest, TellsWhatStateTheDataAreIn) {
  Put(1, "a", 1), Put(2, "a", 1), Put(3, "a", 1);
  ASSERT_TRUE(base::MakeDirectories(folder_.path() / Key(2) / "part").ok());
  ASSERT_TRUE(base::ReplaceFile(folder_.path() / Key(3) / "damaged", "").ok());
  ASSERT_TRUE(base::ReplaceFile(folder_.path() / Key(3) / "place", "bucket \"b\"\n").ok());
  Use(1, 1), Use(2, 2), Use(3, 3);
  const auto list = Census::Of(folder_.path()).list();
  EXPECT_EQ(list[0].state, DataState::kWhole);
  EXPECT_EQ(list[1].state, DataState::kFetching);
  EXPECT_EQ(list[2].state, DataState::kDamaged);
  EXPECT_EQ(list[2].place, "bucket \"b\"");
}

TEST_F(CensusTest, OtherFilesAndFoldersAreNoData) {
  ASSERT_TRUE(base::MakeDirectories(folder_.path() / "places").ok());
  ASSERT_TRUE(base::MakeDirectories(folder_.path() / absl::StrCat(".evicted-", Key(1))).ok());
  ASSERT_TRUE(base::ReplaceFile(folder_.path() / absl::StrCat(Key(1), ".lock"), "").ok());
  EXPECT_THAT(Census::Of(folder_.path()).list(), IsEmpty());
  EXPECT_THAT(Census::Of(folder_.path() / "none").list(), IsEmpty());
}

TEST_F(CensusTest, WhatIsLongestUnusedGoesUntilTheRestFits) {
  Put(1, "a", 100), Put(2, "b", 100), Put(3, "c", 100);
  Use(1, 3000), Use(2, 1000), Use(3, 2000);
  EXPECT_THAT(Going({.most_bytes = 300}), IsEmpty());
  EXPECT_THAT(Going({.most_bytes = 299}), ElementsAre(Key(2)));
  EXPECT_THAT(Going({.most_bytes = 100}), ElementsAre(Key(2), Key(3)));
  EXPECT_THAT(Going({.most_bytes = 100, .spared = {Key(2)}}), ElementsAre(Key(3), Key(1)));
  EXPECT_THAT(Going({.most_bytes = 0}), ElementsAre(Key(2), Key(3), Key(1)));
}

TEST_F(CensusTest, AFileThatAnotherVersionHasAsWellFreesNothingUntilBothGo) {
  Put(1, "a", 100), Put(2, "b", 1), Put(3, "c", 100);
  fs::create_hard_link(folder_.path() / Key(1) / "content/a",
                       folder_.path() / Key(2) / "content/a");
  Use(1, 1000), Use(2, 2000), Use(3, 3000);
  EXPECT_THAT(Going({.most_bytes = 150}), ElementsAre(Key(1), Key(2)));
}

TEST_F(CensusTest, NothingGoesInVain) {
  Put(1, "a", 100), Put(2, "b", 100);
  Use(1, 1000), Use(2, 2000);
  EXPECT_THAT(Going({.freed_bytes = 90}), ElementsAre(Key(1)));
  EXPECT_THAT(Going({.freed_bytes = 110}), ElementsAre(Key(1), Key(2)));
  EXPECT_THAT(Going({.freed_bytes = 201}), IsEmpty()) << "200 at most";
}

TEST_F(CensusTest, WhatIsPinnedOrWasTakenWithoutPinsStays) {
  Put(1, "a", 100), Put(2, "b", 100), Put(3, "c", 100);
  Use(1, 1000), Use(2, 2000), Use(3, 3000);
  const auto pin = base::Open(folder_.path() / "pins" / Key(1), O_RDWR);
  ASSERT_TRUE(pin.ok());
  ASSERT_EQ(::flock(pin->get(), LOCK_SH), 0);
  fs::remove(folder_.path() / "pins" / Key(2));
  EXPECT_TRUE(IsPinned(folder_.path(), Key(1)));
  EXPECT_FALSE(IsPinned(folder_.path(), Key(2)));
  EXPECT_THAT(Going({.most_bytes = 0}), ElementsAre(Key(3)));
}

TEST_F(CensusTest, WhoLooksIsNotTakenForAJobByOthersWhoLook) {
  Put(1, "a", 1), Use(1, 1000);
  std::atomic<int> pinned = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&] {
      for (int look = 0; look < 2000; ++look) pinned += IsPinned(folder_.path(), Key(1)) ? 1 : 0;
    });
  }
  for (std::thread& other : others) other.join();
  EXPECT_EQ(pinned, 0);
}

}  // namespace
}  // namespace tutti::cache
