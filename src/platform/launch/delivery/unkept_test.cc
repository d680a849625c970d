#include "platform/launch/delivery/unkept.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/test_patience.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class UnkeptTest : public testing::Test {
 protected:
  void Put(const std::string& path, size_t bytes) {
    fs::create_directories((work_ / path).parent_path());
    std::ofstream(work_ / path, std::ios::app) << std::string(bytes, 'x');
  }
  // Until the file system's clock, which ticks some milliseconds apart, has moved on.
  absl::Time Since() {
    Put("marker", 1);
    const absl::Time since = ChangeTime(work_ / "marker");
    base::AwaitPatiently(absl::Seconds(10), [&] {
      Put("tick", 1);
      return ChangeTime(work_ / "tick") > since;
    });
    return since;
  }
  std::vector<std::string> Found(absl::Time since = absl::InfinitePast(),
                                 const UnkeptLimits& limits = {}) {
    std::vector<std::string> texts;
    for (const Unkept& unkept : UnkeptBelow(work_, since, limits).largest) {
      texts.push_back(absl::StrCat(unkept.path, " ", unkept.bytes));
    }
    return texts;
  }

  base::TemporaryDirectory folder_;
  fs::path work_ = folder_.path() / "work";
};

TEST_F(UnkeptTest, AFoldersFilesAreOneAndTheLargestComesFirst) {
  Put("model.pt", 3000);
  Put("checkpoints/1/model", 2000);
  Put("checkpoints/2/model", 2500);
  EXPECT_THAT(Found(), ElementsAre("checkpoints 4500", "model.pt 3000"));
}

TEST_F(UnkeptTest, TheDeepestFolderThatHoldsAllOfItIsNamed) {
  Put("src/runs/a/1", 1000);
  Put("src/runs/b/2", 1000);
  EXPECT_THAT(Found(), ElementsAre("src/runs 2000"));
}

TEST_F(UnkeptTest, WhatIsKeptOrOfNoWorthIsNotFound) {
  for (const char* path : {"outputs/model", "logs/log", ".git/pack", ".cache/a", "a/__pycache__/b",
                           "a/c.pyc", "node_modules/d", "env/lib/e"}) {
    Put(path, 5000);
  }
  Put("env/pyvenv.cfg", 5000);
  Put("tiny.txt", 999);
  fs::create_symlink("outputs/model", work_ / "latest");
  Put("outputs/twice", 5000);
  fs::create_hard_link(work_ / "outputs/twice", work_ / "twice");
  EXPECT_THAT(Found(), IsEmpty());
}

TEST_F(UnkeptTest, AFileWhoseNamesAreAllRemovedCountsOnce) {
  Put("runs/step-10", 5000);
  fs::create_hard_link(work_ / "runs/step-10", work_ / "runs/latest");
  EXPECT_THAT(Found(), ElementsAre(testing::AnyOf("runs/step-10 5000", "runs/latest 5000")));
}

TEST_F(UnkeptTest, SmallThingsAreTogetherWhatTheFolderThatHoldsThemIs) {
  EXPECT_EQ(UnkeptBelow(work_, absl::InfinitePast()).small.bytes, 0u);
  Put("tiny.txt", 900);
  Unkept small = UnkeptBelow(work_, absl::InfinitePast()).small;
  EXPECT_EQ(small.path, "tiny.txt");
  for (int i = 0; i < 50; ++i) Put(absl::StrCat("sample-", i), 100);
  const UnkeptFiles found = UnkeptBelow(work_, absl::InfinitePast());
  EXPECT_THAT(found.largest, IsEmpty());
  EXPECT_EQ(found.small.path, "");
  EXPECT_EQ(found.small.bytes, 5900u);
}

TEST_F(UnkeptTest, ResultsAreFoundWhateverTheirSizeAndBesideAnyNumberOfOthers) {
  Put("metrics.json", 20);
  Put("runs/a/events.out.tfevents.1.host", 500);
  Put("runs/a/note", 100);
  for (size_t i = 1; i < 8; ++i) Put(absl::StrCat("data-", i), 1000 * i);
  const auto found = UnkeptBelow(work_, absl::InfinitePast()).largest;
  ASSERT_EQ(found.size(), kMostUnkept + 2);
  EXPECT_EQ(found[0].path, "data-7");
  EXPECT_FALSE(found[0].result);
  EXPECT_EQ(found[kMostUnkept].path, "runs/a");
  EXPECT_EQ(found[kMostUnkept].bytes, 600u);
  EXPECT_TRUE(found[kMostUnkept].result);
  EXPECT_EQ(found[kMostUnkept + 1].path, "metrics.json");
  EXPECT_TRUE(found[kMostUnkept + 1].result);
}

TEST_F(UnkeptTest, TheCodeIsNotFoundButWhatIsWrittenIntoItIs) {
  Put("code/train.py", 5000);
  Put("code/log.csv", 5000);
  const absl::Time since = Since();
  EXPECT_THAT(Found(since), IsEmpty());
  ASSERT_EQ(::chmod((work_ / "code/train.py").c_str(), 0755), 0);
  EXPECT_THAT(Found(since), IsEmpty()) << "another mode is no other content";
  Put("code/log.csv", 1000);
  EXPECT_THAT(Found(since), ElementsAre("code/log.csv 6000"));
}

TEST_F(UnkeptTest, AnOldModificationTimeDoesNotHideANewFile) {
  Put("code.py", 5000);
  const absl::Time since = Since();
  Put("data/extracted.bin", 5000);
  const timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (work_ / "data/extracted.bin").c_str(), old, 0), 0);
  EXPECT_THAT(Found(since), ElementsAre("data/extracted.bin 5000"));
}

TEST_F(UnkeptTest, TheLimitsEndTheSearchAndItSaysSo) {
  for (int i = 0; i < 50; ++i) Put(absl::StrCat("many/", i), 1000);
  const UnkeptFiles found = UnkeptBelow(work_, absl::InfinitePast(), {.entries = 20});
  EXPECT_TRUE(found.more);
  ASSERT_EQ(found.largest.size(), 1u);
  EXPECT_EQ(found.largest[0].bytes, 19'000u) << "the folder itself is one of the twenty";
  EXPECT_TRUE(UnkeptBelow(work_, absl::InfinitePast(), {.time = -absl::Seconds(1)}).more);
  EXPECT_FALSE(UnkeptBelow(work_, absl::InfinitePast()).more);
}

TEST_F(UnkeptTest, WithoutAFolderThereIsNothing) { EXPECT_THAT(Found(), IsEmpty()); }

}  // namespace
}  // namespace tutti::launch
