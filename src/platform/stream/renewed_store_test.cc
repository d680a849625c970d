#include "platform/stream/renewed_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.h"
#include "base/test_patience.h"
#include "platform/storage/objects/memory_store_fake.h"

namespace tutti::stream {
namespace {

using storage::MemoryStore;

class RenewedStoreTest : public ::testing::Test {
 protected:
  absl::StatusOr<GrantedStore> Ask() {
    if (!refusal_.ok()) return refusal_;
    stores_.push_back(std::make_shared<MemoryStore>());
    stores_.back()->Set("a", std::to_string(stores_.size()), 1000);
    return GrantedStore{stores_.back(), now_ + absl::Hours(1)};
  }
  void Make() {
    auto made = RenewedStore::Make([this] { return Ask(); }, [this] { return now_; });
    ASSERT_TRUE(made.ok()) << made.status();
    store_ = *std::move(made);
  }
  // Returns the content of the object, which says with which credentials it was opened.
  static std::string Read(storage::ObjectReader& reader) {
    std::string text(1, ' ');
    EXPECT_TRUE(reader.Read(0, {text.data(), 1}).ok());
    return text;
  }
  absl::StatusOr<std::string> Read() {
    const auto reader = store_->Open("a");
    if (!reader.ok()) return reader.status();
    return Read(**reader);
  }

  absl::Time now_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Status refusal_;
  std::vector<std::shared_ptr<MemoryStore>> stores_;
  std::unique_ptr<RenewedStore> store_;
};

TEST_F(RenewedStoreTest, IsOpenedAnewWhenHalfOfTheTimeIsOver) {
  Make();
  now_ += absl::Minutes(29);
  EXPECT_EQ(*Read(), "1");
  now_ += absl::Minutes(2);
  EXPECT_EQ(*Read(), "2");
  now_ += absl::Minutes(29);
  EXPECT_EQ(*Read(), "2") << "of an hour that began with it";
  EXPECT_TRUE(store_->List("", true).ok());
  EXPECT_EQ(*store_->KindOf("a"), storage::PathKind::kFile);
  EXPECT_EQ(stores_.size(), 2);
}

TEST_F(RenewedStoreTest, AnObjectIsReadToItsEndInTheStoreInWhichItWasOpened) {
  Make();
  const auto reader = store_->Open("a");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->object().bytes, 1);
  const std::weak_ptr<MemoryStore> first = stores_[0];
  stores_[0].reset();
  now_ += absl::Minutes(40);
  EXPECT_EQ(*Read(), "2");
  EXPECT_EQ(Read(**reader), "1");
  EXPECT_FALSE(first.expired());
}

TEST_F(RenewedStoreTest, GoesOnWithWhatItHasWhileTheServiceIsAway) {
  Make();
  refusal_ = absl::UnavailableError("the service is away");
  now_ += absl::Minutes(31);
  EXPECT_EQ(*Read(), "1");
  refusal_ = absl::OkStatus();
  EXPECT_EQ(*Read(), "1") << "it is asked once a minute";
  now_ += RenewedStore::kBetweenTries;
  EXPECT_EQ(*Read(), "2");
  refusal_ = absl::UnavailableError("the service is away");
  now_ += absl::Minutes(61);
  EXPECT_EQ(Read().status().message(), "the service is away") << "now they have ended";
  refusal_ = absl::OkStatus();
  EXPECT_EQ(*Read(), "3") << "each call asks then";
}

TEST_F(RenewedStoreTest, WhoWaitsForARenewalThatFailsIsToldSoAndDoesNotAskAgain) {
  constexpr int kReaders = 4;
  std::atomic<int> looks = 0, asks = 0;
  auto made = RenewedStore::Make(
      [&]() -> absl::StatusOr<GrantedStore> {
        if (refusal_.ok()) return Ask();
        ++asks;
        // Each other reader has looked at the clock, and waits for this answer.
        const auto end = base::Deadline::After(base::Patient(absl::Seconds(30)));
        while (looks < kReaders && !end.Expired()) std::this_thread::yield();
        return refusal_;
      },
      [&] {
        ++looks;
        return now_;
      });
  ASSERT_TRUE(made.ok()) << made.status();
  store_ = *std::move(made);
  refusal_ = absl::UnavailableError("the service is away");
  now_ += absl::Hours(2);
  looks = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < kReaders; ++i) {
    readers.emplace_back([&] { EXPECT_EQ(Read().status(), refusal_); });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(asks, 1);
}

TEST_F(RenewedStoreTest, WhatCannotBeOpenedIsNotMade) {
  refusal_ = absl::NotFoundError("there is no datastore \"a\"");
  const auto made = RenewedStore::Make([this] { return Ask(); }, [this] { return now_; });
  EXPECT_EQ(made.status(), refusal_);
}

TEST_F(RenewedStoreTest, CredentialsWithoutAnEndAreAskedForOnce) {
  auto made = RenewedStore::Make(
      [this]() -> absl::StatusOr<GrantedStore> {
        auto granted = Ask();
        granted->expires = absl::InfiniteFuture();
        return granted;
      },
      [this] { return now_; });
  ASSERT_TRUE(made.ok());
  store_ = *std::move(made);
  now_ += absl::Hours(10'000);
  EXPECT_EQ(*Read(), "1");
}

}  // namespace
}  // namespace tutti::stream
