#include "runtime/device/precision/measurement_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::device {
namespace {

namespace fs = std::filesystem;

fs::path OnlyFileIn(const fs::path& folder) { return fs::directory_iterator(folder)->path(); }

TEST(MeasurementCache, FindsWhatWasKeptForTheSameKeyAlone) {
  const base::TemporaryDirectory folder;
  const MeasurementCache here(folder.path() / "not" / "yet" / "there");
  EXPECT_EQ(here.Find("a layer on a"), std::nullopt);
  here.Keep("a layer on a", 9.25);
  EXPECT_EQ(here.Find("a layer on a"), 9.25);
  EXPECT_EQ(here.Find("a layer on b"), std::nullopt);
  here.Keep("a layer on a", 0.5);
  EXPECT_EQ(here.Find("a layer on a"), 0.5);
}

TEST(MeasurementCache, ADamagedFileIsAsGoodAsNone) {
  const base::TemporaryDirectory folder;
  const MeasurementCache here(folder.path());
  for (const char* text :
       {"", "{", "[1]", "9.25", R"({"key": "a"})", R"({"key": "a", "number": "2"})",
        R"({"key": "a", "number": -2})", R"({"key": "a", "number": 0})",
        R"({"key": "b", "number": 2})", "\xff\xfe"}) {
    here.Keep("a", 9.25);
    ASSERT_TRUE(base::ReplaceFile(OnlyFileIn(folder.path()), text).ok());
    EXPECT_EQ(here.Find("a"), std::nullopt) << text;
  }
  here.Keep("a", 9.25);
  EXPECT_EQ(here.Find("a"), 9.25);
}

TEST(MeasurementCache, AFolderThatCannotBeIsNoError) {
  const base::TemporaryDirectory folder;
  ASSERT_TRUE(base::ReplaceFile(folder.path() / "file", "").ok());
  for (const fs::path& path : {folder.path() / "file" / "tutti", fs::path()}) {
    const MeasurementCache nowhere(path);
    nowhere.Keep("a", 9.25);
    EXPECT_EQ(nowhere.Find("a"), std::nullopt) << path;
  }
}

TEST(MeasurementCache, KeepsTheNewestAndNothingElseGoes) {
  const base::TemporaryDirectory folder;
  const MeasurementCache here(folder.path());
  ASSERT_TRUE(base::ReplaceFile(folder.path() / "another", "file").ok());
  for (size_t i = 0; i < MeasurementCache::kMostKept + 2; ++i) {
    here.Keep(absl::StrCat("key ", i), 1 + static_cast<double>(i));
    for (const auto& entry : fs::directory_iterator(folder.path())) {  // an hour goes by
      fs::last_write_time(entry, fs::last_write_time(entry) - std::chrono::hours(1));
    }
  }
  EXPECT_EQ(here.Find("key 0"), std::nullopt);
  EXPECT_EQ(here.Find("key 1"), std::nullopt);
  EXPECT_EQ(here.Find("key 2"), 3);
  EXPECT_EQ(here.Find(absl::StrCat("key ", MeasurementCache::kMostKept + 1)),
            2 + static_cast<double>(MeasurementCache::kMostKept));
  EXPECT_TRUE(fs::exists(folder.path() / "another"));
}

TEST(MeasurementCache, ManyMayKeepTheSameAtOnce) {
  const base::TemporaryDirectory folder;
  std::vector<std::thread> threads;
  for (int i = 1; i <= 8; ++i) {
    threads.emplace_back([&folder, i] {
      const MeasurementCache here(folder.path());
      for (int round = 0; round < 20; ++round) {
        here.Keep("a", i);
        const auto found = here.Find("a");
        EXPECT_TRUE(found && *found >= 1 && *found <= 8);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(CacheFolder, IsTheUsersOwn) {
  EXPECT_EQ(CacheFolder({{"HOME", "/home/a"}}), "/home/a/.cache/tutti");
  EXPECT_EQ(CacheFolder({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/caches"}}), "/caches/tutti");
  EXPECT_EQ(CacheFolder({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "caches"}}),
            "/home/a/.cache/tutti");
  EXPECT_EQ(CacheFolder({{"HOME", "home"}}), "");
  EXPECT_EQ(CacheFolder({}), "");
}

}  // namespace
}  // namespace tutti::device
