// Covers: fetch_folder.cc, incoming_object.cc, part_file.cc, progress_counter.cc, attempts.h,
// platform/storage/objects/guarded.h.
#include "platform/storage/transfer/fetch_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/test_patience.h"
#include "platform/storage/objects/memory_store_fake.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/fetch_folder.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Bytes that differ from range to range.
std::string Bytes(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes.push_back(static_cast<char>(i * 7 + i / 1000));
  return bytes;
}

class FetchObjectsTest : public ::testing::Test {
 protected:
  FetchObjectsTest() {
    options_.folder = folder_.path() / "to";
    options_.connections = 4;
    options_.range_bytes = 1000;
    options_.attempts.sleep = [this](absl::Duration) { ++pauses_; };
  }

  absl::StatusOr<StorageDone> Fetch(const std::string& path = "data") {
    const auto survey = SurveyPlace(store_, {spec::StoreKind::kS3, "", "b", "", "", path},
                                    PlaceType::kAny, options_.attempts);
    if (!survey.ok()) return survey.status();
    return FetchObjects(store_, *survey, options_);
  }
  std::string File(const std::string& path) {
    return base::ReadFile(options_.folder / path).value_or("(none)");
  }

  MemoryStore store_;
  base::TemporaryDirectory folder_;
  FetchOptions options_;
  std::atomic<int> pauses_ = 0;
};

TEST_F(FetchObjectsTest, BringsSmallAndLargeObjects) {
  store_.Set("data/small", "small");
  store_.Set("data/a/b/large", Bytes(12345));
  store_.Set("data/empty", "");
  store_.Set("data/exact", Bytes(3000));
  store_.Set("other", "not this one");
  const auto done = Fetch();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->objects, 4);
  EXPECT_EQ(done->bytes, 5 + 12345 + 3000);
  EXPECT_EQ(File("small"), "small");
  EXPECT_EQ(File("a/b/large"), Bytes(12345));
  EXPECT_EQ(File("empty"), "");
  EXPECT_EQ(File("exact"), Bytes(3000));
  EXPECT_FALSE(fs::exists(options_.folder / kPartsName));
  EXPECT_FALSE(fs::exists(options_.folder / "other"));
}

TEST_F(FetchObjectsTest, BringsThemFromAStoreThatStreams) {
  store_.set_direct(/*piece=*/300);
  for (const bool has_md5 : {true, false}) {
    store_.set_md5(has_md5, /*is_right=*/true);
    store_.Set("data/small", "small");
    store_.Set("data/a/b/large", Bytes(12345));
    store_.Set("data/empty", "");
    std::atomic<int> opened = 0;
    store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
      opened += call == "open" ? 1 : 0;
      return absl::OkStatus();
    });
    const int64_t before = store_.bytes_read();
    ASSERT_TRUE(Fetch().ok());
    EXPECT_EQ(File("small"), "small");
    EXPECT_EQ(File("a/b/large"), Bytes(12345));
    EXPECT_EQ(File("empty"), "");
    EXPECT_EQ(store_.bytes_read() - before, 5 + 12345);
    EXPECT_EQ(opened, 3) << "each answer has said of which version it is";
    const auto noted = ManifestEntriesIn(File(kManifestName));
    EXPECT_EQ(noted.at("a/b/large").sha256, base::Hex(base::Sha256Of(Bytes(12345))));
    EXPECT_EQ(noted.at("small").sha256, base::Hex(base::Sha256Of("small")));
    EXPECT_EQ(noted.at("small").boot, "") << "it is on the disk";
  }
}

TEST_F(FetchObjectsTest, GoesOnInTheMidstOfAStreamThatWasCut) {
  store_.set_direct(/*piece=*/300);
  store_.Set("data/large", Bytes(5000));
  std::atomic<int> cuts = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t offset) -> absl::Status {
    if (call == "piece" && offset % 1000 == 600 && cuts++ % 2 == 0) {
      return absl::UnavailableError("cut off");
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(File("large"), Bytes(5000));
  EXPECT_GT(pauses_, 0);
  EXPECT_EQ(store_.bytes_read(), 5000) << "no byte came twice";
}

TEST_F(FetchObjectsTest, AStreamThatIsNotWhatTheStoreSaysIsTold) {
  store_.set_direct(/*piece=*/300);
  store_.Set("data/large", Bytes(5000));
  store_.Set("data/small", "small");
  store_.set_md5(/*has_md5=*/false, /*is_right=*/true);
  store_.set_checksum(ChecksumKind::kCrc64Nvme, /*is_right=*/false);
  EXPECT_TRUE(absl::IsDataLoss(Fetch().status()));
  EXPECT_FALSE(fs::exists(options_.folder / "large"));
  EXPECT_FALSE(fs::exists(options_.folder / "small"));
  store_.set_checksum(ChecksumKind::kCrc64Nvme, /*is_right=*/true);
  EXPECT_TRUE(Fetch().ok());
}

TEST_F(FetchObjectsTest, SyncsManyFilesAtOnce) {
  for (int i = 0; i < 100; ++i) store_.Set(absl::StrCat("data/", i / 10, "/", i), Bytes(10));
  ASSERT_TRUE(Fetch().ok());
  for (const auto& [path, entry] : ManifestEntriesIn(File(kManifestName))) {
    EXPECT_EQ(entry.boot, "") << path;
  }
  EXPECT_EQ(ManifestEntriesIn(File(kManifestName)).size(), 100u);
}

TEST_F(FetchObjectsTest, HasTheDigestOfTheListAndAnotherOnceSomethingChanges) {
  store_.Set("data/a", "1");
  store_.Set("data/b", "2");
  auto survey =
      *SurveyPlace(store_, {spec::StoreKind::kS3, "", "b", "", "", "data"}, PlaceType::kAny, {});
  ASSERT_TRUE(AskForVersions(store_, 2, {}, 0, survey).ok());
  const auto first = Fetch();
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->digest, DigestOf(survey.objects, 0));
  store_.Set("data/b", "3");
  EXPECT_NE(Fetch()->digest, first->digest);
}

TEST_F(FetchObjectsTest, BringsAFileByItsName) {
  store_.Set("data/x/file.csv", "1,2");
  ASSERT_TRUE(Fetch("data/x/file.csv").ok());
  EXPECT_EQ(File("file.csv"), "1,2");
}

TEST_F(FetchObjectsTest, ReadsNothingASecondTime) {
  store_.Set("data/a", Bytes(2500));
  store_.Set("data/b", Bytes(10));
  ASSERT_TRUE(Fetch().ok());
  const int64_t before = store_.bytes_read();
  store_.Set("data/b", Bytes(20));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(store_.bytes_read() - before, 20);
  EXPECT_EQ(File("b"), Bytes(20));
}

TEST_F(FetchObjectsTest, AsksNoMoreForWhatItHasAndWhatIsSettled) {
  store_.Set("data/a", Bytes(2500), 50);
  store_.Set("data/b", Bytes(10), 150);
  std::atomic<int> opened = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    opened += call == "open" ? 1 : 0;
    return absl::OkStatus();
  });
  const auto fetch = [&](int64_t settled_before) {
    options_.settled_before = settled_before;
    opened = 0;
    EXPECT_TRUE(Fetch().ok());
    return opened.load();
  };
  EXPECT_EQ(fetch(100), 2);
  EXPECT_EQ(fetch(100), 1) << "of what is young alone";
  EXPECT_EQ(fetch(200), 1) << "that was young when it was fetched";
  EXPECT_EQ(fetch(200), 0);
  store_.Set("data/a", Bytes(2500), 60);
  EXPECT_EQ(fetch(200), 1);
}

TEST_F(FetchObjectsTest, TakesWhatHasNotChangedFromAFormerFetch) {
  store_.Set("data/a", Bytes(2500), 50);
  store_.Set("data/b", Bytes(10), 150);
  store_.Set("data/c/d", Bytes(20), 50);
  options_.settled_before = 100;
  ASSERT_TRUE(Fetch().ok());
  const fs::path former = options_.folder;
  options_.formers = {{former, former / kManifestName, "data"}};
  options_.folder = folder_.path() / "next";
  store_.Set("data/c/d", Bytes(30), 60);
  std::atomic<int> opened = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    opened += call == "open" ? 1 : 0;
    return absl::OkStatus();
  });
  const int64_t before = store_.bytes_read();
  const auto done = Fetch();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->objects, 3);
  EXPECT_EQ(store_.bytes_read() - before, 30);
  EXPECT_EQ(opened, 2) << "what has changed, and what is young";
  EXPECT_EQ(File("c/d"), Bytes(30));
  for (const char* path : {"a", "b"}) {
    EXPECT_TRUE(fs::equivalent(options_.folder / path, former / path)) << path;
  }
  EXPECT_EQ(*base::ReadFile(former / "c/d"), Bytes(20));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(opened, 3) << "it is noted in its own folder";
}

TEST_F(FetchObjectsTest, TakesAnObjectThatChangesAfterItWasListedForAnotherVersion) {
  store_.Set("data/a", "old", 50);
  options_.settled_before = 100;
  const auto list = Fetch();
  ASSERT_TRUE(list.ok()) << list.status();
  fs::remove_all(options_.folder);
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "open") store_.Set(path, "new", 5000);
    return absl::OkStatus();
  });
  const auto done = Fetch();
  EXPECT_EQ(File("a"), "new");
  EXPECT_NE(done->digest, list->digest);
}

TEST_F(FetchObjectsTest, RemovesWhatTheStoreHasNoLonger) {
  store_.Set("data/a", "1");
  store_.Set("data/b/c", "2");
  ASSERT_TRUE(Fetch().ok());
  store_.Erase("data/b/c");
  store_.Set("data/b", "a file where a folder was");
  store_.Erase("data/a");
  store_.Set("data/a/x", "and a folder where a file was");
  const auto done = Fetch();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(File("b"), "a file where a folder was");
  EXPECT_EQ(File("a/x"), "and a folder where a file was");
}

TEST_F(FetchObjectsTest, GoesOnWithTheRangesThatLack) {
  store_.Set("data/large", Bytes(20500));
  options_.connections = 1;
  options_.attempts.most = 1;
  store_.set_hook([](absl::string_view call, const std::string&, int64_t offset) {
    return call == "read" && offset == 12000 ? absl::UnavailableError("away") : absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsUnavailable(Fetch().status()));
  EXPECT_FALSE(fs::exists(options_.folder / "large"));
  EXPECT_EQ(store_.bytes_read(), 12000);
  store_.set_hook({});
  const auto done = Fetch();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(store_.bytes_read(), 20500);
  EXPECT_EQ(File("large"), Bytes(20500));
}

TEST_F(FetchObjectsTest, BeginsAnewWithARangeOfAnotherVersion) {
  store_.Set("data/large", Bytes(5000));
  options_.connections = 1;
  options_.attempts.most = 1;
  store_.set_hook([](absl::string_view call, const std::string&, int64_t offset) {
    return call == "read" && offset == 3000 ? absl::UnavailableError("away") : absl::OkStatus();
  });
  ASSERT_FALSE(Fetch().ok());
  store_.set_hook({});
  store_.Set("data/large", std::string(5000, 'x'));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(File("large"), std::string(5000, 'x'));
}

TEST_F(FetchObjectsTest, FinishesAPartThatHasAllItsRanges) {
  const std::string bytes = Bytes(2500);
  store_.Set("data/large", bytes);
  store_.set_hook([](absl::string_view call, const std::string& path, int64_t) {
    static std::atomic<int> opened = 0;
    return call == "open" && path == "data/large" && ++opened == 2 ? absl::UnavailableError("away")
                                                                   : absl::OkStatus();
  });
  store_.set_md5(false, true);  // so that it is opened a second time, when all is there
  options_.attempts.most = 1;
  ASSERT_TRUE(absl::IsUnavailable(Fetch().status()));
  const int64_t before = store_.bytes_read();
  EXPECT_EQ(before, 2500);
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(store_.bytes_read(), before);
  EXPECT_EQ(File("large"), bytes);
}

TEST_F(FetchObjectsTest, ShowsThatItGoesOnWhileItHashesWhatIsThere) {
  store_.Set("data/large", Bytes(20500));
  store_.set_md5(false, true);  // so that it is opened a second time, when all is there
  std::atomic<int> opened = 0, calls = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    return call == "open" && ++opened == 2 ? absl::UnavailableError("away") : absl::OkStatus();
  });
  options_.attempts.most = 1;
  ASSERT_TRUE(absl::IsUnavailable(Fetch().status()));
  store_.set_hook([&](absl::string_view, const std::string&, int64_t) {
    ++calls;
    return absl::OkStatus();
  });
  Activity activity;
  options_.attempts.activity = &activity;
  ASSERT_TRUE(Fetch().ok());
  EXPECT_GE(activity.steps(), calls + 21) << "each of 21 ranges is a step beside the calls";
  EXPECT_FALSE(activity.is_on_disk());
}

TEST_F(FetchObjectsTest, TriesAgainWhatMayPass) {
  store_.Set("data/a", Bytes(2500));
  std::atomic<int> failures = 3;
  store_.set_hook([&](absl::string_view, const std::string&, int64_t) {
    return failures-- > 0 ? absl::UnavailableError("busy") : absl::OkStatus();
  });
  const auto done = Fetch();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(pauses_, 3);
}

TEST_F(FetchObjectsTest, NamesTheObjectThatHasChangedMeanwhile) {
  for (const bool has_md5 : {true, false}) {
    for (const size_t size : {10, 5000}) {
      fs::remove_all(options_.folder);
      store_.set_md5(has_md5, true);
      store_.Set("data/a", Bytes(size));
      std::atomic<bool> changed = false;
      store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
        if (call == "read" && !changed.exchange(true)) store_.Set(path, std::string(size, 'n'));
        return absl::OkStatus();
      });
      const auto done = Fetch();
      EXPECT_TRUE(absl::IsAborted(done.status())) << done.status() << has_md5 << size;
      EXPECT_EQ(ObjectOf(done.status()), "a");
      EXPECT_FALSE(fs::exists(options_.folder / "a"));
      store_.set_hook({});
      EXPECT_TRUE(Fetch().ok());
      EXPECT_EQ(File("a"), std::string(size, 'n'));
    }
  }
}

TEST_F(FetchObjectsTest, TakesAnObjectWhoseEtagIsNoMd5IfItReadsTheSameTwice) {
  store_.Set("data/a", Bytes(5000));
  store_.Set("data/b", Bytes(10));
  store_.set_md5(true, false);
  options_.connections = 1;
  const auto done = Fetch();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(File("a"), Bytes(5000));
  EXPECT_EQ(store_.bytes_read(), 5000 + 5000 + 10);  // the first one alone twice
}

TEST_F(FetchObjectsTest, TellsDamageOfOneThatCameWithItsAnswerThoughItsEtagMayBeNoMd5) {
  store_.set_direct(/*piece=*/300);
  store_.set_md5(/*has_md5=*/true, /*is_right=*/false);
  store_.Set("data/a", Bytes(10));
  store_.set_damaged(1);
  const auto damaged = Fetch();
  EXPECT_TRUE(absl::IsDataLoss(damaged.status())) << damaged.status();
  EXPECT_FALSE(fs::exists(options_.folder / "a"));
  ASSERT_TRUE(Fetch().ok());
  EXPECT_EQ(File("a"), Bytes(10));
}

TEST_F(FetchObjectsTest, KeepsNothingOpenOfWhatIsDoneWhileOneObjectIsSlow) {
  constexpr int kObjects = 100;
  store_.set_direct(/*piece=*/300);
  store_.Set("data/0", Bytes(5000));
  for (int i = 1; i <= kObjects; ++i) store_.Set(absl::StrCat("data/", i), Bytes(1500));
  const auto open_files = [] {
    const auto files = fs::directory_iterator("/proc/self/fd");
    return std::distance(fs::begin(files), fs::end(files));
  };
  const auto before = open_files();
  std::atomic<int> opened = 0;
  std::atomic<bool> is_held = false, others_came = false;
  std::atomic<std::ptrdiff_t> most = 0;
  const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "open" && ++opened == kObjects) {
      most = open_files();
      others_came = true;
    }
    if (call == "piece" && path == "data/0" && !is_held.exchange(true)) {
      while (!others_came && deadline.Remaining() > absl::ZeroDuration()) std::this_thread::yield();
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(Fetch().ok());
  EXPECT_TRUE(others_came);
  EXPECT_LT(most - before, 30) << "four objects at a time, two files each";
}

TEST_F(FetchObjectsTest, TooManyOpenFilesAreNoFullDisk) {
  store_.Set("data/a", Bytes(10));
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) -> absl::Status {
    return call == "read" ? absl::ErrnoToStatus(EMFILE, "open a") : absl::OkStatus();
  });
  const absl::Status status = Fetch().status();
  EXPECT_FALSE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(LackingOf(status), 0);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Too many open files"));
}

TEST_F(FetchObjectsTest, FetchesAnewWhatCouldNotBePutOnTheDisk) {
  options_.connections = 1;
  store_.Set("data/a", Bytes(10));
  store_.Set("data/b", Bytes(20));
  ASSERT_TRUE(Fetch().ok());
  store_.Set("data/b", Bytes(3000));
  store_.Set("data/c", Bytes(40));
  store_.Set("data/d", Bytes(50));
  const auto cannot_be_written = [&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "open" && path == "data/d") {  // the system has no way to put this one on a disk
      fs::remove(options_.folder / "c");
      fs::create_symlink("/dev/null", options_.folder / "c");
    }
    return absl::OkStatus();
  };
  store_.set_hook(cannot_be_written);
  for (const int others : {0, 100}) {  // few are synced one by one, many at once
    for (int i = 0; i < others; ++i) store_.Set(absl::StrCat("data/e", i), Bytes(7));
    fs::remove(options_.folder / "d");
    store_.Set("data/c", Bytes(40 + others));
    store_.Set("data/d", Bytes(50 + others));
    EXPECT_FALSE(Fetch().ok());
    EXPECT_EQ(File("c"), "(none)");
    EXPECT_EQ(File("b"), Bytes(3000)) << "what came well stays";
    store_.set_hook({});
    const int64_t before = store_.bytes_read();
    ASSERT_TRUE(Fetch().ok());
    EXPECT_EQ(store_.bytes_read() - before, 40 + others);
    store_.set_hook(cannot_be_written);
  }
}

TEST_F(FetchObjectsTest, WhatAnEarlierFetchBroughtAndTheStoreHasNoLongerIsNotSynced) {
  options_.connections = 1;
  for (const char* path : {"data/a", "data/dir/x", "data/was/y", "data/z"}) {
    store_.Set(path, Bytes(10));
  }
  store_.set_hook([](absl::string_view call, const std::string& path, int64_t) {
    return call == "open" && path == "data/z" ? absl::PermissionDeniedError("no")
                                              : absl::OkStatus();
  });
  ASSERT_FALSE(Fetch().ok());
  ASSERT_EQ(File("dir/x"), Bytes(10)) << "its line is of a fetch that has not ended";
  store_.set_hook({});
  store_.Erase("data/dir/x");
  store_.Erase("data/was/y");
  store_.Set("data/was", Bytes(20));  // an object where a folder was
  const auto done = Fetch();
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(File("was"), Bytes(20));
  EXPECT_FALSE(fs::exists(options_.folder / "dir"));
}

// After another start of the machine the file is read, which may take long.
TEST_F(FetchObjectsTest, ShowsThatItReadsWhatMayBeLostAndReadsItOnce) {
  options_.connections = 1;
  options_.attempts.most = 1;
  options_.range_bytes = 1 << 20;
  const size_t blocks = 20;  // of a MiB each
  store_.Set("data/a", Bytes(blocks << 20), 50);
  options_.settled_before = 100;
  ASSERT_TRUE(Fetch().ok());
  const fs::path manifest = options_.folder / kManifestName;
  const std::string line = File(kManifestName);
  const std::string of_another = absl::StrReplaceAll(line, {{"{", "{\"boot\":\"another\","}});
  ASSERT_TRUE(base::WriteFileAtomic(manifest, of_another).ok());
  store_.Set("data/b", Bytes(10), 50);
  store_.set_hook([](absl::string_view, const std::string& path, int64_t) {
    return path == "data/b" ? absl::UnavailableError("away") : absl::OkStatus();
  });
  Activity activity;
  options_.attempts.activity = &activity;
  EXPECT_TRUE(absl::IsUnavailable(Fetch().status()));
  EXPECT_GT(activity.steps(), static_cast<int64_t>(blocks));
  const auto noted = ManifestEntriesIn(File(kManifestName));
  EXPECT_FALSE(MayBeLost(noted.at("a")));
  EXPECT_EQ(store_.bytes_read(), static_cast<int64_t>(blocks << 20));
}

constexpr std::array kChecksums = {ChecksumKind::kCrc32, ChecksumKind::kCrc32c,
                                   ChecksumKind::kCrc64Nvme, ChecksumKind::kSha1,
                                   ChecksumKind::kSha256};

TEST_F(FetchObjectsTest, KnowsByAChecksumWhatHasNoMd5AndAsksOnce) {
  store_.Set("data/a", Bytes(5000));
  store_.Set("data/b", Bytes(10));
  std::atomic<int> opened = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    opened += call == "open" ? 1 : 0;
    return absl::OkStatus();
  });
  const auto opened_with = [&](ChecksumKind kind, bool has_md5, bool is_md5) {
    fs::remove_all(options_.folder);
    store_.set_md5(has_md5, is_md5);
    store_.set_checksum(kind, true);
    opened = 0;
    const auto done = Fetch();
    EXPECT_TRUE(done.ok()) << done.status() << NameOf(kind);
    EXPECT_EQ(File("a"), Bytes(5000));
    return opened.load();
  };
  EXPECT_EQ(opened_with(ChecksumKind::kNone, false, true), 4) << "twice each";
  for (const ChecksumKind kind : kChecksums) {
    EXPECT_EQ(opened_with(kind, false, true), 2) << NameOf(kind);
    EXPECT_EQ(opened_with(kind, true, true), 2) << NameOf(kind);
    const int64_t before = store_.bytes_read();
    EXPECT_EQ(opened_with(kind, true, false), 2) << NameOf(kind);
    EXPECT_EQ(store_.bytes_read() - before, 5010) << "an ETag that is no MD5 costs nothing";
  }
}

TEST_F(FetchObjectsTest, NamesTheObjectThatIsNotWhatItsChecksumSays) {
  for (const ChecksumKind kind : kChecksums) {
    for (const bool has_md5 : {true, false}) {
      for (const size_t size : {10, 5000}) {
        fs::remove_all(options_.folder);
        store_.Set("data/a", Bytes(size));
        store_.set_md5(has_md5, has_md5);
        store_.set_checksum(kind, false);
        const auto done = Fetch();
        EXPECT_TRUE(absl::IsDataLoss(done.status())) << done.status() << NameOf(kind) << size;
        EXPECT_EQ(ObjectOf(done.status()), "a");
        EXPECT_THAT(std::string(done.status().message()), HasSubstr(NameOf(kind)));
        EXPECT_FALSE(fs::exists(options_.folder / "a"));
      }
    }
  }
}

TEST_F(FetchObjectsTest, TellsAChangeApartFromALossOfBytesWhereThereIsAChecksum) {
  for (const size_t size : {10, 5000}) {
    fs::remove_all(options_.folder);
    store_.set_checksum(ChecksumKind::kCrc64Nvme, true);
    store_.Set("data/a", Bytes(size));
    std::atomic<bool> changed = false;
    store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
      if (call == "read" && !changed.exchange(true)) store_.Set(path, std::string(size, 'n'));
      return absl::OkStatus();
    });
    EXPECT_TRUE(absl::IsAborted(Fetch().status()));
    store_.set_hook({});
  }
}

TEST_F(FetchObjectsTest, RefusesNamesBeforeItWritesAnything) {
  store_.Set("data/../x", "1");
  store_.Set("data/fine", "2");
  const auto done = Fetch();
  EXPECT_TRUE(absl::IsInvalidArgument(done.status())) << done.status();
  EXPECT_EQ(ObjectOf(done.status()), "../x");
  EXPECT_FALSE(fs::exists(options_.folder));
}

TEST_F(FetchObjectsTest, TellsAnObjectThatVanishes) {
  store_.Set("data/a", "1");
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "open") store_.Erase(path);
    return absl::OkStatus();
  });
  EXPECT_TRUE(absl::IsAborted(Fetch().status()));
}

TEST_F(FetchObjectsTest, SaysBeforeItBeginsThatTheDiskHasTooLittleRoom) {
  Survey survey;
  survey.objects.push_back({"huge", int64_t{1} << 58});
  const auto done = FetchObjects(store_, survey, options_);
  EXPECT_TRUE(absl::IsResourceExhausted(done.status())) << done.status();
  EXPECT_THAT(std::string(done.status().message()), HasSubstr("are free"));
  const int64_t lacking = LackingOf(done.status()), huge = int64_t{1} << 58;
  EXPECT_GT(lacking, huge / 2);
  EXPECT_LT(lacking, huge) << "something is free";
}

TEST_F(FetchObjectsTest, TakesNothingOfADiskThatHasNoRoomForTheWhole) {
  const fs::path folder = folder_.path();
  fs::create_directory(folder / kPartsName);
  const auto free = base::FreeBytes(folder);
  ASSERT_TRUE(free.ok()) << free.status();
  const auto bytes = static_cast<int64_t>(*free + (int64_t{1} << 30));
  const auto part = PartFile::Open(folder, {"huge", bytes, "e"}, int64_t{1} << 30, "boot");
  EXPECT_TRUE(absl::IsResourceExhausted(part.status())) << part.status();
  EXPECT_EQ(BytesOfParts(folder), 0);
}

TEST_F(FetchObjectsTest, SaysWhatHasNotComeWhereTheDiskHasNoRoomForIt) {
  store_.Set("data/a", Bytes(5000), 50);
  options_.settled_before = 100;
  ASSERT_TRUE(Fetch().ok());
  options_.formers = {{options_.folder, options_.folder / kManifestName, "data"}};
  options_.folder = folder_.path() / "next";
  options_.connections = 1;
  store_.Set("data/b", Bytes(700), 60);
  store_.Set("data/c", Bytes(5000), 60);
  store_.Set("data/d", Bytes(100), 60);
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) -> absl::Status {
    if (call != "read" || path != "data/c") return absl::OkStatus();
    return absl::ErrnoToStatus(ENOSPC, "write");
  });
  const auto done = Fetch();
  EXPECT_TRUE(absl::IsResourceExhausted(done.status())) << done.status();
  // A part of the large one, or its space, may be there; b has arrived, and a is in the former
  // folder.
  EXPECT_LE(LackingOf(done.status()), 3 * 4096);
  EXPECT_GE(LackingOf(done.status()), 4096);
}

TEST_F(FetchObjectsTest, WhatIsOfTheSameSizeAndAnotherVersionIsLacking) {
  store_.Set("data/a", Bytes(5000), 50);
  options_.settled_before = 100;
  ASSERT_TRUE(Fetch().ok());
  Survey survey{"data"};
  survey.objects.push_back({"a", 5000, "", "", 60});
  const auto manifest = ObjectManifest::Open(folder_.path());
  ASSERT_TRUE(manifest.ok());
  const FormerFetches formers({{options_.folder, options_.folder / kManifestName, "data"}}, "data");
  const absl::Status full = absl::ResourceExhaustedError("full");
  const auto lacking = [&](int64_t settled_before) {
    return LackingOf(
        WithLackingOf(full, survey, folder_.path(), {**manifest, formers, settled_before}));
  };
  EXPECT_EQ(lacking(100), 2 * 4096);
  EXPECT_EQ(lacking(0), 4096) << "it may be the same, for all that is known";
}

TEST_F(FetchObjectsTest, EndsWhenALibraryThrows) {
  for (int i = 0; i < 5; ++i) store_.Set(absl::StrCat("data/", i), Bytes(3500));
  for (const char* thrower : {"open", "read"}) {
    store_.set_hook([&](absl::string_view call, const std::string&, int64_t) -> absl::Status {
      if (call == thrower) throw std::runtime_error("no token");
      return absl::OkStatus();
    });
    const auto done = Fetch();
    EXPECT_TRUE(absl::IsInternal(done.status())) << done.status();
    EXPECT_THAT(std::string(done.status().message()), HasSubstr("no token"));
  }
}

TEST_F(FetchObjectsTest, TakesNoMoreConnectionsThanItHas) {
  for (int i = 0; i < 50; ++i) store_.Set(absl::StrCat("data/", i), Bytes(3500));
  std::atomic<int> now = 0, most = 0;
  store_.set_hook([&](absl::string_view, const std::string&, int64_t) {
    const int count = ++now;
    for (int seen = most; count > seen && !most.compare_exchange_weak(seen, count);) {
    }
    --now;
    return absl::OkStatus();
  });
  ASSERT_TRUE(Fetch().ok());
  EXPECT_LE(most, options_.connections);
}

TEST_F(FetchObjectsTest, ReadsAsManyRangesAndObjectsAtTheSameTimeAsItHasConnections) {
  for (const bool is_large : {true, false}) {
    for (int i = 0; i < (is_large ? 1 : 8); ++i) {
      store_.Set(absl::StrCat("data/", is_large, i), Bytes(is_large ? 8000 : 800));
    }
    absl::Mutex mutex;
    int reading = 0, most = 0;
    const base::Deadline deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
    store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
      if (call != "read") return absl::OkStatus();
      absl::MutexLock lock(&mutex);
      most = std::max(most, ++reading);
      const auto all_read = [&] { return most >= options_.connections; };
      mutex.AwaitWithTimeout(absl::Condition(&all_read), deadline.Remaining());
      --reading;
      return absl::OkStatus();
    });
    ASSERT_TRUE(Fetch().ok());
    EXPECT_EQ(most, options_.connections) << (is_large ? "ranges of one" : "small objects");
  }
}

TEST(ProgressCounter, TellsOfWhatHasHappenedMeanwhile) {
  ProgressCounter counter(2, 10);
  std::atomic<bool> told = false;
  counter.ReportDuring(
      [&] {
        counter.AddBytes(5);
        counter.AddObject();
        while (!told) std::this_thread::yield();
      },
      [&](const StorageProgress& progress) {
        EXPECT_EQ(progress.objects, 1);
        EXPECT_EQ(progress.bytes, 5);
        EXPECT_EQ(progress.of_bytes, 10);
        told = true;
      },
      absl::Milliseconds(1));
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace tutti::storage
