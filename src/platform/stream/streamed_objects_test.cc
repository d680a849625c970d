#include "platform/stream/streamed_objects.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/machine/folder.h"
#include "base/test_patience.h"
#include "base/unique_fd.h"
#include "platform/storage/objects/memory_store_fake.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/storage_fault.h"

namespace tutti::stream {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

constexpr int64_t kSize = 1000;  // of each object
const std::function<bool()> kStays = [] { return false; };

std::string Name(int i) { return absl::StrCat("train-", i, ".tar"); }
std::string Bytes(int i) { return std::string(kSize, static_cast<char>('a' + i)); }

class StreamedObjectsTest : public ::testing::Test {
 protected:
  StreamedObjectsTest() {
    for (int i = 0; i < 8; ++i) store_.Set("set/" + Name(i), Bytes(i), /*modified=*/1000);
    options_.folder = folder_.path() / "streamed";
    options_.most_bytes = 4 * kSize;
    options_.fetches = 1;
    options_.settled_before = 2000;
    options_.attempts.sleep = [](absl::Duration) {};
    options_.attempts.most = 2;
  }
  ~StreamedObjectsTest() override { objects_.reset(); }

  StreamedObjects& Open() {
    objects_.reset();
    auto survey = storage::SurveyPlace(store_, {spec::StoreKind::kS3, "", "b", "", "", "set"},
                                       storage::PlaceType::kAny, options_.attempts);
    EXPECT_TRUE(survey.ok()) << survey.status();
    objects_ = std::make_unique<StreamedObjects>(store_, *std::move(survey), options_);
    return *objects_;
  }
  // Returns what a reader reads of an object that it asks for.
  std::string Read(StreamedObjects::Reader reader, int i) {
    const auto file = objects_->Get(reader, Name(i), kStays);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? base::ReadFile(*file).value_or("?") : "?";
  }
  bool IsOnDisk(int i) {
    for (const std::string& folder : base::NamesIn(options_.folder)) {
      std::error_code error;
      if (fs::exists(options_.folder / folder / Name(i), error)) return true;
    }
    return false;
  }
  void AwaitOnDisk(int i) {
    const base::Deadline end = base::Deadline::After(base::Patient(absl::Seconds(30)));
    while (!IsOnDisk(i) && !end.Expired()) std::this_thread::yield();
    EXPECT_TRUE(IsOnDisk(i)) << Name(i);
  }
  std::vector<std::string> Names(int from, int to) {
    std::vector<std::string> names;
    for (int i = from; i < to; ++i) names.push_back(Name(i));
    return names;
  }

  storage::MemoryStore store_;
  const base::TemporaryDirectory folder_;
  storage::Activity activity_;  // of the objects, to their end
  StreamOptions options_;
  std::unique_ptr<StreamedObjects> objects_;
};

TEST_F(StreamedObjectsTest, GivesAnObjectAndFetchesItOnceForAllReaders) {
  Open();
  EXPECT_EQ(Read(1, 3), Bytes(3));
  EXPECT_EQ(Read(2, 3), Bytes(3));
  EXPECT_EQ(store_.bytes_read(), kSize);
  const auto file = objects_->Get(1, Name(3), kStays);
  EXPECT_EQ(fs::status(*file).permissions(), fs::perms(0444)) << "readers share it";
}

TEST_F(StreamedObjectsTest, FetchesAheadInTheOrderThatAReaderSaysUpToTheBound) {
  std::vector<std::string> asked;
  store_.set_hook([&](absl::string_view call, const std::string& path, int64_t) {
    if (call == "read") asked.push_back(path);
    return absl::OkStatus();
  });
  StreamedObjects& objects = Open();
  objects.SetAhead(1, {Name(5), Name(2), Name(7), Name(0), Name(1), Name(3)});
  for (const int i : {5, 2, 7, 0}) AwaitOnDisk(i);
  EXPECT_EQ(objects.bytes(), 4u * kSize);
  EXPECT_THAT(asked,
              ElementsAre("set/" + Name(5), "set/" + Name(2), "set/" + Name(7), "set/" + Name(0)));
  EXPECT_EQ(Read(1, 5), Bytes(5));
  EXPECT_FALSE(IsOnDisk(1)) << "the reader holds one, and is going to ask for the others";
  objects.Drop(1, Name(5));
  AwaitOnDisk(1);
  EXPECT_FALSE(IsOnDisk(5)) << "gone for it";
  EXPECT_EQ(objects.bytes(), 4u * kSize);
}

TEST_F(StreamedObjectsTest, AnEpochLargerThanTheBoundIsReadWithinIt) {
  StreamedObjects& objects = Open();
  objects.SetAhead(1, Names(0, 8));
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(Read(1, i), Bytes(i));
    EXPECT_LE(objects.bytes(), options_.most_bytes);
    objects.Drop(1, Name(i));
  }
  EXPECT_EQ(store_.bytes_read(), 8 * kSize) << "each once";
}

TEST_F(StreamedObjectsTest, WhatIsAskedForComesBeyondTheBoundIfAllElseIsHeld) {
  StreamedObjects& objects = Open();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Read(1, i), Bytes(i));
  EXPECT_EQ(objects.bytes(), 6u * kSize);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(IsOnDisk(i)) << "a reader has it";
  objects.Leave(1);
  EXPECT_EQ(Read(2, 7), Bytes(7));
  EXPECT_LE(objects.bytes(), options_.most_bytes) << "what the one that left held may go";
}

TEST_F(StreamedObjectsTest, AFailureIsToldAndTheNextRequestTriesAgain) {
  std::atomic<bool> fails = true;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    return call == "read" && fails ? absl::UnavailableError("away") : absl::OkStatus();
  });
  StreamedObjects& objects = Open();
  objects.SetAhead(1, {Name(2)});
  const auto failed = objects.Get(1, Name(2), kStays);
  EXPECT_TRUE(absl::IsUnavailable(failed.status())) << failed.status();
  EXPECT_EQ(storage::ObjectOf(failed.status()), Name(2));
  EXPECT_EQ(objects.bytes(), 0u);
  fails = false;
  EXPECT_EQ(Read(1, 2), Bytes(2));
  EXPECT_TRUE(absl::IsNotFound(objects.Get(1, "train-9.tar", kStays).status()));
}

TEST_F(StreamedObjectsTest, TheNextProcessReadsWhatIsThereWithoutAskingTheStore) {
  Open();
  EXPECT_EQ(Read(1, 3), Bytes(3));
  EXPECT_EQ(Read(1, 4), Bytes(4));
  StreamedObjects& again = Open();
  EXPECT_EQ(again.bytes(), 2u * kSize);
  store_.set_hook([](absl::string_view, const std::string&, int64_t) {
    return absl::UnavailableError("away");
  });
  EXPECT_EQ(Read(1, 3), Bytes(3));
}

TEST_F(StreamedObjectsTest, WhatHasChangedAtTheStoreOrOnTheDiskIsFetchedAgain) {
  Open();
  EXPECT_EQ(Read(1, 3), Bytes(3));
  const auto damaged = *objects_->Get(1, Name(4), kStays);
  objects_.reset();
  store_.Set("set/" + Name(3), Bytes(9), 1500);
  const fs::path folder = damaged.parent_path();
  fs::permissions(damaged, fs::perms(0644));
  ASSERT_TRUE(base::WriteFileAtomic(damaged, std::string(kSize, '#')).ok());
  ASSERT_TRUE(base::WriteFileAtomic(folder / ".tutti-boot", "an earlier start").ok());
  StreamedObjects& again = Open();
  EXPECT_EQ(again.bytes(), 1u * kSize) << "it is hashed when it is read, not before";
  EXPECT_EQ(Read(1, 3), Bytes(9));
  EXPECT_EQ(Read(1, 4), Bytes(4));
}

TEST_F(StreamedObjectsTest, WhatAnEarlierStartHasLeftIsHashedOnceWhenItIsRead) {
  Open();
  EXPECT_EQ(Read(1, 3), Bytes(3));
  const fs::path note = objects_->Get(1, Name(3), kStays)->parent_path() / ".tutti-boot";
  objects_.reset();
  ASSERT_TRUE(base::WriteFileAtomic(note, "an earlier start").ok());
  const int64_t before = store_.bytes_read();
  Open();
  EXPECT_EQ(base::ReadFile(note).value_or("?"), "an earlier start") << "who connects waits for it";
  EXPECT_EQ(Read(1, 3), Bytes(3));
  EXPECT_NE(base::ReadFile(note).value_or("?"), "an earlier start");
  EXPECT_EQ(store_.bytes_read(), before);
}

TEST_F(StreamedObjectsTest, OnAFullDiskWhatNobodyHoldsGoesAndThenOthersData) {
  std::atomic<int> full = 0, made_room = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    if (call != "read" || full == 0) return absl::OkStatus();
    --full;
    return absl::ResourceExhaustedError("the disk is full");
  });
  options_.make_room = [&](const std::atomic<bool>&) { return ++made_room == 1; };
  StreamedObjects& objects = Open();
  EXPECT_EQ(Read(1, 0), Bytes(0));
  EXPECT_EQ(Read(1, 1), Bytes(1));
  objects.Drop(1, Name(0));
  full = 2;  // once for the object that nobody holds, once for the others'
  EXPECT_EQ(Read(1, 2), Bytes(2));
  EXPECT_FALSE(IsOnDisk(0));
  EXPECT_TRUE(IsOnDisk(1));
  EXPECT_EQ(made_room, 1);
  full = 100;
  EXPECT_TRUE(absl::IsResourceExhausted(objects.Get(1, Name(3), kStays).status()));
}

TEST_F(StreamedObjectsTest, ASilentStoreIsToldFromReadersThatAskForNothing) {
  options_.attempts.activity = &activity_;
  std::atomic<bool> blocks = true, has_begun = false;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    while (call == "read" && blocks) {
      has_begun = true;
      std::this_thread::yield();
    }
    return absl::OkStatus();
  });
  StreamedObjects& objects = Open();
  storage::SilenceWatch watch(activity_, absl::ZeroDuration());
  EXPECT_EQ(watch.Look(0, absl::Hours(1)), absl::ZeroDuration()) << "nobody reads";
  EXPECT_FALSE(objects.Get(1, Name(0), [&] { return has_begun.load(); }).ok());
  EXPECT_FALSE(activity_.is_on_disk());
  const absl::Duration since = watch.Look(0, absl::Hours(2));
  EXPECT_EQ(watch.Look(0, absl::Hours(3)), since + absl::Hours(1)) << "a fetch that hangs";
  blocks = false;
  EXPECT_EQ(Read(2, 0), Bytes(0));
  EXPECT_TRUE(activity_.is_on_disk()) << "nobody reads any more";
}

TEST_F(StreamedObjectsTest, ItsOwnDiskThatItLooksAtIsNoSilenceOfTheStore) {
  Open();
  EXPECT_EQ(Read(1, 0), Bytes(0));
  objects_.reset();
  options_.attempts.activity = &activity_;
  options_.settled_before = 500;  // so that what is left is asked for
  std::atomic<bool> on_disk_while_asked = false;
  std::atomic<int64_t> steps = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    if (call != "open") return absl::OkStatus();
    on_disk_while_asked = on_disk_while_asked || activity_.is_on_disk();
    steps = activity_.steps();
    return absl::OkStatus();
  });
  // A file that nobody writes is read as slowly as a disk may be.
  const std::vector<std::string> folders = base::NamesIn(options_.folder);
  ASSERT_EQ(folders.size(), 1u);
  const fs::path manifest = options_.folder / folders[0] / storage::kManifestName;
  ASSERT_TRUE(fs::remove(manifest));
  ASSERT_EQ(::mkfifo(manifest.c_str(), 0600), 0);
  std::thread opens([&] { Open(); });
  EXPECT_TRUE(
      base::AwaitPatiently(absl::Seconds(30), [&] { return steps > 0 && activity_.is_on_disk(); }));
  EXPECT_GT(activity_.steps(), steps) << "that the store has answered";
  base::UniqueFd(::open(manifest.c_str(), O_WRONLY | O_CLOEXEC)).reset();
  opens.join();
  EXPECT_FALSE(on_disk_while_asked);
}

TEST_F(StreamedObjectsTest, AReaderThatGoesIsWaitedForNoLonger) {
  std::atomic<bool> blocks = true, has_begun = false;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    while (call == "read" && blocks) {
      has_begun = true;
      std::this_thread::yield();
    }
    return absl::OkStatus();
  });
  StreamedObjects& objects = Open();
  const auto file = objects.Get(1, Name(0), [&] { return has_begun.load(); });
  EXPECT_TRUE(absl::IsCancelled(file.status())) << file.status();
  blocks = false;
  EXPECT_EQ(Read(2, 0), Bytes(0)) << "it came for the others";
}

}  // namespace
}  // namespace tutti::stream
