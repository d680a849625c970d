// Covers: stream_client.cc.
#include "runtime/data/source/stream/streamed_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "runtime/data/decode/jpeg/jpeg_fake.h"
#include "runtime/data/loader_fixture.h"
#include "runtime/data/source/stream/stream_server_fake.h"
#include "runtime/data/source/tar/index_shards.h"
#include "runtime/data/source/tar/tar_fake.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kShards = 8, kImages = 4;  // of each shard

std::string Name(int shard) { return absl::StrFormat("train-%06d.tar", shard); }

class StreamedShardsTest : public LoaderTest {
 protected:
  StreamedShardsTest() {
    address_ = absl::StrCat("s3://bucket/", folder_.path().filename().string());
    Write("classes.txt", "cat\ndog\n");
    for (int shard = 0; shard < kShards; ++shard) {
      TarBuilder tar;
      for (int i = 0; i < kImages; ++i) {
        const int number = shard * kImages + i;
        tar.Add(absl::StrCat(number, ".jpg"), EncodePattern({.width = 32, .height = 32}, number));
        tar.Add(absl::StrCat(number, ".cls"), absl::StrCat(number % 2));
      }
      Write(Name(shard), tar.Finish());
    }
    WriteIndex();
    options_.cache = "/cache";
    server_ = std::make_unique<StreamServerFake>(address_, folder_.path(), options_.cache);
  }

  void Write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(base::WriteFileAtomic(folder_.path() / name, content).ok());
  }
  void WriteIndex() {
    const auto index = IndexShards(folder_.path(), "train");
    ASSERT_TRUE(index.ok()) << index.status();
    ASSERT_TRUE(WriteShardIndex(folder_.path(), "train", *index).ok());
  }
  absl::StatusOr<std::shared_ptr<const Dataset>> TryOpen(absl::string_view split = "train") {
    return StreamedShards::Open(address_, split, options_);
  }
  std::shared_ptr<const Dataset> Open() {
    auto shards = TryOpen();
    EXPECT_TRUE(shards.ok()) << shards.status();
    return shards.value_or(nullptr);
  }
  std::string ErrorOf(absl::string_view split = "train") {
    return std::string(TryOpen(split).status().message());
  }
  std::string Read(const Dataset& shards, int64_t index) {
    std::string scratch;
    const auto bytes = shards.Encoded(index, scratch);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return std::string(bytes.value_or("?"));
  }
  static void Await(const std::function<bool()>& holds) {
    const base::Deadline end = base::Deadline::After(base::Patient(absl::Seconds(30)));
    while (!holds() && !end.Expired()) std::this_thread::yield();
    EXPECT_TRUE(holds());
  }
  int GetsOf(const std::string& name) {
    const std::vector<std::string> gets = server_->gets();
    return static_cast<int>(std::count(gets.begin(), gets.end(), name));
  }

  const base::TemporaryDirectory folder_;
  std::string address_;
  StreamOptions options_;
  std::unique_ptr<StreamServerFake> server_;
};

TEST_F(StreamedShardsTest, KnowsWhatThereIsBeforeAShardIsThere) {
  const auto shards = Open();
  EXPECT_EQ(shards->size(), kShards * kImages);
  EXPECT_THAT(shards->classes(), ElementsAre("cat", "dog"));
  EXPECT_EQ(shards->parts().size(), static_cast<size_t>(kShards));
  EXPECT_THAT(server_->gets(), ElementsAre("train-index.txt", "classes.txt"));
  EXPECT_EQ(shards->Describe(5), "train-000001.tar: image 1");
}

TEST_F(StreamedShardsTest, AnImageIsThatOfItsShardAsAreLabelAndName) {
  const auto shards = Open();
  const auto local = OpenTarShards(folder_.path(), "train");
  ASSERT_TRUE(local.ok());
  for (int64_t i = 0; i < shards->size(); ++i) {
    std::string scratch;
    EXPECT_EQ(Read(*shards, i), *(*local)->Encoded(i, scratch));
    EXPECT_EQ(shards->label(i), (*local)->label(i));
    EXPECT_EQ(shards->Describe(i), (*local)->Describe(i));
  }
  EXPECT_EQ(GetsOf(Name(3)), 1) << "each shard is asked for once";
}

TEST_F(StreamedShardsTest, FollowsTheSamplerAndGivesBackWhatItIsDoneWith) {
  const auto shards = Open();
  const std::vector<int64_t> order = {5, 2, 7, 0, 1, 3, 4, 6};
  const std::span<const int64_t> all = order;
  shards->WillVisit(all.subspan(0, 2), all.subspan(2));
  Await([&] { return GetsOf(Name(0)) == 1; });
  EXPECT_THAT(server_->gets(),
              ElementsAre("train-index.txt", "classes.txt", Name(5), Name(2), Name(7), Name(0)));
  EXPECT_THAT(server_->ahead(),
              ElementsAre(Name(5), Name(2), Name(7), Name(0), Name(1), Name(3), Name(4), Name(6)));
  shards->WillVisit(all.subspan(2, 2), all.subspan(4));
  shards->WillVisit(all.subspan(4, 2), all.subspan(6));
  Await([&] { return server_->drops().size() == 4; });  // index, classes, and two shards
  EXPECT_THAT(server_->drops(), AllOf(Contains(Name(5)), Contains(Name(2))));
}

TEST_F(StreamedShardsTest, WhoWaitsForAShardGetsItHoweverFarThePlanHasGoneOn) {
  const auto shards = Open();
  const std::vector<int64_t> order = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::span<const int64_t> all = order;
  server_->Hold(Name(0));
  std::atomic<bool> has_read = false;
  std::thread reader([&] {
    Read(*shards, 0);
    has_read = true;
  });
  Await([&] { return GetsOf(Name(0)) == 1; });
  shards->WillVisit(all.subspan(2, 2), all.subspan(4));
  shards->WillVisit(all.subspan(4, 2), all.subspan(6));
  server_->Hold("");
  Await([&] { return has_read.load(); });
  Read(*shards, 0);  // asked for anew: one that waits for good goes on
  reader.join();
}

TEST_F(StreamedShardsTest, ReadsAheadOnlyAQuarterOfTheDisk) {
  const auto two = static_cast<int64_t>(fs::file_size(folder_.path() / Name(1)) +
                                        fs::file_size(folder_.path() / Name(2)));
  server_->set_most_bytes(4 * two);
  const auto shards = Open();
  const std::vector<int64_t> order = {0, 1, 2, 3, 4, 5, 6, 7};
  shards->WillVisit(std::span(order).first(1), std::span(order).subspan(1));
  Await([&] { return !server_->ahead().empty(); });
  EXPECT_THAT(server_->ahead(), ElementsAre(Name(0), Name(1), Name(2)));
}

TEST_F(StreamedShardsTest, AProgramThatEndsIsReachedAgainAndHearsWhatIsToCome) {
  const auto shards = Open();
  const std::vector<int64_t> order = {3, 4};
  server_->CutOffAfter(0);
  shards->WillVisit(std::span(order).first(1), std::span(order).subspan(1));
  EXPECT_EQ(Read(*shards, 3 * kImages), Read(*shards, 3 * kImages));
  EXPECT_EQ(GetsOf(Name(3)), 2) << "once more after the end";
  EXPECT_THAT(server_->ahead(), ElementsAre(Name(3), Name(4)));
}

TEST_F(StreamedShardsTest, WhatTheStoreDoesNotGiveIsAnErrorAndIsTriedAnew) {
  const auto shards = Open();
  std::string scratch;
  server_->Fail(Name(2), "error network bucket \"b\": the store cannot be reached");
  const auto away = shards->Encoded(2 * kImages, scratch);
  EXPECT_TRUE(absl::IsUnavailable(away.status())) << away.status();
  EXPECT_EQ(away.status().message(), "bucket \"b\": the store cannot be reached");
  server_->Fail(Name(2), "error credentials bucket \"b\": no");
  EXPECT_TRUE(absl::IsFailedPrecondition(shards->Encoded(2 * kImages, scratch).status()));
  server_->Fail(Name(2), "");
  EXPECT_FALSE(Read(*shards, 2 * kImages).empty());
}

TEST_F(StreamedShardsTest, AnAnswerThatComesTooLateIsNotTakenForThatOfTheNextRequest) {
  std::atomic<bool> cancelled = false;
  const auto client = StreamClient::Open(address_, options_, cancelled);
  ASSERT_TRUE(client.ok()) << client.status();
  server_->Hold(Name(0));
  std::thread canceller([&] {
    Await([&] { return GetsOf(Name(0)) == 1; });
    cancelled = true;
  });
  const auto late = (*client)->Get(Name(0));
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(late.status())) << late.status();
  cancelled = false;
  server_->Hold("");
  const auto next = (*client)->Get(Name(1));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->filename(), Name(1));
}

TEST_F(StreamedShardsTest, AShardThatIsNotWhatTheIndexSaysIsNamed) {
  const auto shards = Open();
  Write(Name(1), TarBuilder().Add("0.jpg", "x").Add("0.cls", "0").Finish());
  std::string scratch;
  const auto bytes = shards->Encoded(kImages, scratch);
  EXPECT_TRUE(absl::IsFailedPrecondition(bytes.status())) << bytes.status();
  EXPECT_THAT(std::string(bytes.status().message()),
              AllOf(HasSubstr(Name(1)), HasSubstr("has 1 images"), HasSubstr("the index says 4")));
}

TEST_F(StreamedShardsTest, WhatIsMissingIsSaidAtOpeningWithTheRemedy) {
  EXPECT_THAT(ErrorOf("test"), HasSubstr("no split \"test\"; there is train"));
  fs::rename(folder_.path() / Name(4), folder_.path() / "gone");
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr(Name(4)), HasSubstr("is not there")));
  fs::rename(folder_.path() / "gone", folder_.path() / Name(4));
  Write(Name(4), "cut short");
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr(Name(4)), HasSubstr("has 9 bytes")));
  Write("train-index.txt", "tutti-index 1\nshard\n");
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr("train-index.txt"), HasSubstr("line 2")));
  fs::remove(folder_.path() / "train-index.txt");
  EXPECT_THAT(ErrorOf(), HasSubstr("tutti-data index FOLDER"));
  fs::remove(folder_.path() / Name(0));
  EXPECT_THAT(ErrorOf(), HasSubstr("holds no shards"));
}

TEST_F(StreamedShardsTest, AProgramThatCannotBeStartedIsNamed) {
  server_.reset();
  options_.program = "/nowhere/tutti-storage";
  EXPECT_THAT(ErrorOf(), AllOf(HasSubstr(address_), HasSubstr("TUTTI_STORAGE_PROGRAM")));
}

// By the launcher, with its node's key and the site's bound, which a reader does not know.
TEST_F(StreamedShardsTest, AProgramThatAnotherHasStartedIsWaitedForBeforeOneOfItsOwn) {
  const fs::path started = folder_.path() / "started";
  options_.program = (folder_.path() / "program").native();
  ASSERT_TRUE(base::WriteFileAtomic(options_.program,
                                    absl::StrCat("#!/bin/sh\ntouch ", started.native(), "\n"), 0700)
                  .ok());
  const auto shards = Open();
  server_.reset();
  std::thread reads([&] { Read(*shards, 0); });
  const base::Deadline glance = base::Deadline::After(absl::Milliseconds(300));
  while (!fs::exists(started) && !glance.Expired()) std::this_thread::yield();
  EXPECT_FALSE(fs::exists(started));
  server_ = std::make_unique<StreamServerFake>(address_, folder_.path(), options_.cache);
  reads.join();
  EXPECT_EQ(GetsOf(Name(0)), 1);
}

TEST_F(StreamedShardsTest, TheLoadersBatchesAreTheSameForAnyNumberOfRanksAndAfterASeek) {
  LoaderOptions options = CifarOptions();
  options.global_batch = 8;
  options.mixed_parts = 3;
  options.threads = 2;
  const auto whole = Make(Open(), options);
  const std::vector<Copy> batches = Take(*whole, 8);  // two epochs
  std::set<int64_t> seen;
  for (int i = 0; i < 4; ++i) seen.insert(batches[i].samples.begin(), batches[i].samples.end());
  EXPECT_EQ(seen.size(), static_cast<size_t>(kShards * kImages)) << "each image once an epoch";
  options.world_size = 2;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    const auto part = Make(Open(), options);
    part->Seek(1, 1);
    const std::vector<Copy> own = Take(*part, 3);
    for (int i = 0; i < 3; ++i) {
      const auto& all = batches[static_cast<size_t>(5 + i)].samples;
      const std::vector<int64_t> expected(all.begin() + options.rank * 4,
                                          all.begin() + options.rank * 4 + 4);
      EXPECT_EQ(own[static_cast<size_t>(i)].samples, expected);
    }
  }
}

TEST_F(StreamedShardsTest, AStoresFailureEndsTheBatchAndReplacesNoImage) {
  LoaderOptions options = CifarOptions();
  options.global_batch = 8;
  options.max_unreadable = 1000;
  for (int i = 0; i < kShards; ++i) server_->Fail(Name(i), "error network away");
  const auto loader = Make(Open(), options);
  const auto batch = loader->Next(Soon());
  EXPECT_TRUE(absl::IsUnavailable(batch.status())) << batch.status();
  EXPECT_EQ(loader->unreadable(), 0);
  for (int i = 0; i < kShards; ++i) server_->Fail(Name(i), "");
  // It is back. Batches that were being made ahead may have failed before it was.
  absl::Status last = batch.status();
  for (int ahead = 0; ahead <= options.prefetch && absl::IsUnavailable(last); ++ahead) {
    last = loader->Next(Soon()).status();
  }
  EXPECT_TRUE(last.ok()) << last;
}

TEST_F(StreamedShardsTest, ALoaderOfLabelsAloneWaitsForTheShardsThatSayThem) {
  const auto local = OpenTarShards(folder_.path(), "train");
  ASSERT_TRUE(local.ok());
  LoaderOptions options = CifarOptions();
  options.global_batch = 8;
  options.mixed_parts = 3;
  options.threads = 2;
  const std::vector<Copy> expected = Take(*Make(Open(), options), 8);
  options.labels_only = true;
  const auto loader = Make(Open(), options);
  for (const Copy& one : expected) {
    const auto batch = loader->Next(Soon());
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(std::vector<int64_t>(batch->samples, batch->samples + batch->count), one.samples);
    for (int64_t i = 0; i < batch->count; ++i) {
      EXPECT_EQ(batch->labels[i], (*local)->label(batch->samples[i]));
    }
  }
}

TEST_F(StreamedShardsTest, ALabelThatIsKnownStaysKnownAndOneThatIsNotIsAnError) {
  const auto shards = Open();
  const int64_t index = kImages + 1;  // of shard 1, of class 1
  EXPECT_EQ(shards->label(index), 0);
  server_->Fail(Name(1), "error network away");
  EXPECT_TRUE(absl::IsUnavailable(shards->AwaitLabel(index)));
  server_->Fail(Name(1), "");
  ASSERT_TRUE(shards->AwaitLabel(index).ok());
  EXPECT_EQ(shards->label(index), 1);
  const std::vector<int64_t> order = {2, 3, 4, 5};
  shards->WillVisit(std::span(order).subspan(0, 2), std::span(order).subspan(2));
  shards->WillVisit(std::span(order).subspan(2), {});
  Await([&] {
    const auto drops = server_->drops();
    return std::count(drops.begin(), drops.end(), Name(1)) == 1;
  });
  server_->Fail(Name(1), "error network away");
  EXPECT_TRUE(shards->AwaitLabel(index).ok()) << "its shard has gone again";
}

TEST_F(StreamedShardsTest, AShardWithoutASampleIsNamed) {
  Write(Name(kShards), TarBuilder().Finish());
  WriteIndex();
  const auto shards = Open();
  ASSERT_NE(shards, nullptr);
  EXPECT_EQ(shards->Remarks(),
            (std::vector<std::string>{"1 file holds no sample: " + Name(kShards)}));
  shards->WillVisit(std::vector<int64_t>{kShards, 0}, {});
  EXPECT_FALSE(Read(*shards, 0).empty());
}

}  // namespace
}  // namespace tutti::data
