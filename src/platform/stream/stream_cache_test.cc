#include "platform/stream/stream_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "base/file.h"
#include "base/process/waiting.h"
#include "base/test_patience.h"
#include "platform/cache/fetched_home.h"
#include "platform/cache/node_cache.h"
#include "platform/storage/objects/memory_store_fake.h"
#include "platform/storage/transfer/activity.h"
#include "platform/storage/transfer/fetch_objects.h"
#include "platform/storage/transfer/serve_request.h"

namespace tutti::stream {
namespace {

namespace fs = std::filesystem;

const std::function<bool()> kGoesOn = [] { return false; };

class StreamCacheTest : public ::testing::Test {
 protected:
  StreamCacheTest() {
    store_.Set("set/a", "the first", /*modified=*/1000);
    store_.Set("set/b", "the second", 1000);
    request_.place = {spec::StoreKind::kS3, "", "bucket", "", "", "set"};
    asked_.cache = folder_.path();
  }
  OpenedStream Open(std::optional<uint64_t> most_bytes = 1 << 20) {
    asked_.most_bytes = most_bytes;
    auto opened = OpenStream(store_, request_, asked_, {});
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *std::move(opened) : OpenedStream();
  }
  static std::string Read(OpenedStream& opened, const std::string& path) {
    const auto file = opened.objects->Get(1, path, kGoesOn);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? base::ReadFile(*file).value_or("?") : "?";
  }

  storage::MemoryStore store_;
  storage::StorageRequest request_;
  StreamRequest asked_;
  const base::TemporaryDirectory folder_;
  std::atomic<bool> never_ = false;
};

TEST_F(StreamCacheTest, TheCacheListsWhatIsStreamedAndKeepsItWhileItIsOpen) {
  const cache::NodeCache node(folder_.path());
  {
    OpenedStream opened = Open();
    EXPECT_EQ(Read(opened, "a"), "the first");
    const auto list = node.List();
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(list[0].state, cache::DataState::kStreamed);
    EXPECT_EQ(list[0].place, storage::Described(request_.place));
    EXPECT_TRUE(list[0].is_pinned);
    EXPECT_TRUE(node.MakeRoom({.freed_bytes = 1}, never_)->empty());
  }
  const int64_t before = store_.bytes_read();
  {
    OpenedStream again = Open();
    EXPECT_EQ(Read(again, "a"), "the first");
    EXPECT_EQ(store_.bytes_read(), before) << "the next process has it";
  }
  EXPECT_EQ(node.MakeRoom({.freed_bytes = 1}, never_)->size(), 1u) << "as any other data";
  EXPECT_TRUE(node.List().empty());
}

TEST_F(StreamCacheTest, APlaceWhoseListIsGivenIsNotListed) {
  int lists = 0;
  store_.set_hook([&](absl::string_view call, const std::string&, int64_t) {
    lists += call == "list";
    return absl::OkStatus();
  });
  asked_.list = folder_.path() / "list";
  request_.operation = storage::Operation::kBrowse;
  request_.list_file = asked_.list;
  const auto end = storage::ServeRequest(store_, request_, {}, [](const auto&) {});
  ASSERT_TRUE(std::holds_alternative<storage::StorageDone>(end));
  EXPECT_EQ(lists, 1);
  {
    OpenedStream opened = Open();
    EXPECT_EQ(Read(opened, "b"), "the second");
    EXPECT_EQ(lists, 1);
  }
  fs::remove(asked_.list);
  OpenedStream anew = Open();
  EXPECT_EQ(Read(anew, "a"), "the first");
  EXPECT_EQ(lists, 2) << "who comes when the list is gone lists it";
}

TEST_F(StreamCacheTest, ACacheThatTakesLongIsNoSilenceOfTheStore) {
  const cache::NodeCache node(folder_.path());
  { OpenedStream opened = Open(); }
  ASSERT_EQ(node.List().size(), 1u);
  auto lock = base::LockFile(node.LockOf(node.List()[0].key), never_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  storage::Activity activity;
  storage::Attempts attempts;
  attempts.activity = &activity;
  std::thread opens([&] { EXPECT_TRUE(OpenStream(store_, request_, asked_, attempts).ok()); });
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return activity.is_on_disk(); }));
  lock->reset();
  opens.join();
}

TEST_F(StreamCacheTest, TwoProcessesAtTheSameTimeHaveFoldersOfTheirOwn) {
  OpenedStream one = Open(), other = Open();
  EXPECT_EQ(Read(one, "a"), "the first");
  EXPECT_EQ(Read(other, "a"), "the first");
  EXPECT_EQ(cache::NodeCache(folder_.path()).List().size(), 2u);
}

TEST_F(StreamCacheTest, EachNodeThatSharesTheFolderComesBackToItsOwnAndHasAPartOfTheBound) {
  asked_.nodes = 2;
  const auto open = [&](const std::string& node) {
    asked_.node = node;
    return Open();
  };
  {
    OpenedStream one = open("n1"), other = open("n2");
    EXPECT_EQ(one.objects->most_bytes(), 1u << 19);
    EXPECT_EQ(Read(one, "a"), "the first");
    EXPECT_EQ(Read(other, "b"), "the second");
  }
  const int64_t before = store_.bytes_read();
  OpenedStream other = open("n2"), one = open("n1");  // in another order
  EXPECT_EQ(Read(one, "a"), "the first");
  EXPECT_EQ(Read(other, "b"), "the second");
  EXPECT_EQ(store_.bytes_read(), before);
}

TEST_F(StreamCacheTest, WhatAJobHasFetchedWholeIsNotFetchedAgain) {
  const cache::NodeCache node(folder_.path());
  const std::string key(cache::kKeyDigits, 'a');
  const cache::FetchedHome home(node.PathOf(key), "set", false);
  const auto survey = storage::SurveyPlace(store_, request_.place, storage::PlaceType::kAny, {});
  ASSERT_TRUE(survey.ok());
  storage::FetchOptions options{.folder = home.part()};
  options.settled_before = 2000;
  ASSERT_TRUE(storage::FetchObjects(store_, *survey, options).ok());
  ASSERT_TRUE(home.Keep().ok());
  const auto pin = node.Pin(key);
  node.NoteOrigin(key, {"set", spec::StoreOf(request_.place), "set"});
  const int64_t before = store_.bytes_read();
  OpenedStream opened = Open();
  EXPECT_EQ(Read(opened, "b"), "the second");
  EXPECT_EQ(store_.bytes_read(), before) << "a hard link";
}

TEST_F(StreamCacheTest, WhatIsAskedForIsNoMoreThanTheDiskHas) {
  EXPECT_EQ(Open().objects->most_bytes(), 1u << 20);
  constexpr uint64_t kAll = ~uint64_t{0};
  EXPECT_LT(Open(kAll).objects->most_bytes(), kAll / 2);
}

TEST_F(StreamCacheTest, APlaceThatIsNotThereIsAnError) {
  request_.place.path = "nothing";
  EXPECT_TRUE(absl::IsNotFound(OpenStream(store_, request_, asked_, {}).status()));
}

}  // namespace
}  // namespace tutti::stream
