#include "runtime/scoring/serve/batch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::scoring {
namespace {

using testing::SizeIs;

absl::Duration At(double seconds) { return absl::Seconds(seconds); }

CallPtr CallOf(size_t images, double arrived = 1, double deadline = 1e9) {
  auto call = std::make_shared<Call>();
  call->images.resize(images);
  for (Image& image : call->images) image.encoded = "image";
  call->arrived = At(arrived);
  call->deadline = At(deadline);
  return call;
}

class BatchQueueTest : public testing::Test {
 protected:
  LanePtr AddLane(size_t limit, double image_seconds = 1) {
    return queue_.AddLane(nullptr, limit, image_seconds);
  }
  CallPtr Add(const LanePtr& lane, size_t images) {
    CallPtr call = CallOf(images);
    EXPECT_FALSE(queue_.Add(lane, call).has_value());
    return call;
  }
  // Decodes all that may be decoded; returns how many images.
  size_t DecodeAll() {
    size_t count = 0;
    while (const auto next = queue_.TakeToDecode()) {
      next->second.image().pixels = {1};
      EXPECT_FALSE(queue_.Decoded(next->first, next->second, absl::OkStatus()));
      ++count;
    }
    return count;
  }
  // Computes a batch, which takes `seconds`; returns its lane, or null.
  LanePtr ComputeOne(double seconds) {
    DecodeAll();
    auto batch = queue_.TakeBatch(At(now_));
    if (!batch) return nullptr;
    now_ += seconds;
    queue_.Computed(*batch, At(now_));
    return batch->lane;
  }

  BatchQueue queue_;
  double now_ = 1;
};

TEST_F(BatchQueueTest, AnIdleModelBeginsAtOnceAndImagesCollectWhileItComputes) {
  const LanePtr lane = AddLane(4);
  const CallPtr first = Add(lane, 1);
  EXPECT_EQ(DecodeAll(), 1u);
  auto batch = queue_.TakeBatch(At(1));
  ASSERT_TRUE(batch.has_value());
  EXPECT_THAT(batch->images, SizeIs(1));
  for (int i = 0; i < 3; ++i) Add(lane, 2);
  DecodeAll();
  EXPECT_THAT(queue_.Computed(*batch, At(2)), testing::ElementsAre(first));
  EXPECT_TRUE(first->finished);
  EXPECT_EQ(first->began, At(1));
  batch = queue_.TakeBatch(At(2));
  ASSERT_TRUE(batch.has_value());
  EXPECT_THAT(batch->images, SizeIs(4)) << "no more than its largest batch";
}

TEST_F(BatchQueueTest, DecodersWorkAheadByTwoBatchesAtMost) {
  const LanePtr lane = AddLane(3);
  for (int i = 0; i < 100; ++i) Add(lane, 1);
  EXPECT_EQ(DecodeAll(), 6u);
  auto batch = queue_.TakeBatch(At(1));
  EXPECT_EQ(DecodeAll(), 3u) << "as many as the batch has taken";
  EXPECT_EQ(lane->backlog(), 100u);
}

TEST_F(BatchQueueTest, RefusesAtOnceWhatItWouldAnswerTooLate) {
  const LanePtr lane = AddLane(2, /*image_seconds=*/1);
  EXPECT_TRUE(queue_.Add(lane, CallOf(5, 1, /*deadline=*/2)).has_value());
  EXPECT_FALSE(queue_.Add(lane, CallOf(2, 1, 1)).has_value())
      << "a batch of an idle model is always tried";
  EXPECT_FALSE(queue_.Add(lane, CallOf(5, 1, 8)).has_value());
  const auto late = queue_.Add(lane, CallOf(1, 1, 8));
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(*late, At(1));
  EXPECT_EQ(lane->backlog(), 7u) << "what is refused does not wait";
}

TEST_F(BatchQueueTest, LearnsWhatAnImageTakes) {
  const LanePtr lane = AddLane(2, /*image_seconds=*/100);
  for (int i = 0; i < 60; ++i) Add(lane, 2);
  while (ComputeOne(1) != nullptr) {
  }
  EXPECT_NEAR(lane->image_seconds, 0.5, 0.01);
}

TEST_F(BatchQueueTest, ModelsThatAreBusyGetHalfOfTheTimeEach) {
  const LanePtr slow = AddLane(1, 3), fast = AddLane(4, 0.1);
  double used[2] = {};
  for (int i = 0; i < 400; ++i) {
    if (slow->backlog() == 0) Add(slow, 8);
    if (fast->backlog() == 0) Add(fast, 64);
    DecodeAll();
    auto batch = queue_.TakeBatch(At(now_));
    ASSERT_TRUE(batch.has_value());
    const bool is_slow = batch->lane == slow;
    const double seconds = is_slow ? 3 : 0.4;
    now_ += seconds;
    used[is_slow ? 0 : 1] += seconds;
    queue_.Computed(*batch, At(now_));
  }
  EXPECT_NEAR(used[0] / (used[0] + used[1]), 0.5, 0.05);
}

TEST_F(BatchQueueTest, AModelThatWasIdleDoesNotMakeUpForIt) {
  const LanePtr busy = AddLane(1), idle = AddLane(1);
  for (int i = 0; i < 50; ++i) Add(busy, 1);
  for (int i = 0; i < 30; ++i) EXPECT_EQ(ComputeOne(1), busy);
  for (int i = 0; i < 20; ++i) Add(idle, 1);
  int of_idle = 0;
  for (int i = 0; i < 20; ++i) of_idle += ComputeOne(1) == idle ? 1 : 0;
  EXPECT_NEAR(of_idle, 10, 1);
}

TEST_F(BatchQueueTest, AnImageThatCannotBeReadEndsItsCall) {
  const LanePtr lane = AddLane(4);
  const CallPtr bad = Add(lane, 3), good = Add(lane, 1);
  const auto first = queue_.TakeToDecode(), second = queue_.TakeToDecode();
  EXPECT_TRUE(queue_.Decoded(lane, first->second, absl::InvalidArgumentError("no image")));
  EXPECT_TRUE(bad->finished);
  EXPECT_EQ(bad->status.message(), "image 1 of 3: no image");
  EXPECT_FALSE(queue_.Decoded(lane, second->second, absl::OkStatus())) << "it is over already";
  EXPECT_EQ(DecodeAll(), 1u) << "the other call's image";
  const auto batch = queue_.TakeBatch(At(1));
  ASSERT_THAT(batch->images, SizeIs(1));
  EXPECT_EQ(batch->images[0].call, good);
}

TEST_F(BatchQueueTest, AClientThatLeavesFreesItsPlace) {
  const LanePtr lane = AddLane(1);
  const CallPtr gone = Add(lane, 10), stays = Add(lane, 1);
  DecodeAll();
  EXPECT_EQ(queue_.Withdraw(gone), Withdrawal::kWithdrawn);
  EXPECT_EQ(lane->backlog(), 1u);
  DecodeAll();
  auto batch = queue_.TakeBatch(At(1));
  EXPECT_EQ(batch->images[0].call, stays);
  EXPECT_EQ(queue_.Withdraw(stays), Withdrawal::kUnderWay);
  queue_.Computed(*batch, At(2));
  EXPECT_EQ(queue_.Withdraw(stays), Withdrawal::kFinished);
}

TEST_F(BatchQueueTest, QuietIsNotTakenForWork) {
  const LanePtr lane = AddLane(1, /*image_seconds=*/1);
  const CallPtr bad = Add(lane, 2);
  const auto good = queue_.TakeToDecode(), damaged = queue_.TakeToDecode();
  queue_.Decoded(lane, good->second, absl::OkStatus());
  auto batch = queue_.TakeBatch(At(1));
  queue_.Computed(*batch, At(2));
  queue_.Decoded(lane, damaged->second, absl::InvalidArgumentError("damaged"));
  now_ = 1000;
  Add(lane, 1);
  ComputeOne(1);
  EXPECT_NEAR(lane->image_seconds, 1, 0.01);
}

TEST_F(BatchQueueTest, SeveralWorkersTakeImagesOffSooner) {
  BatchQueue queue(/*workers=*/2);
  const LanePtr lane = queue.AddLane(nullptr, 1, /*image_seconds=*/1);
  EXPECT_EQ(lane->image_seconds, 0.5);
  std::optional<Batch> batches[2];
  const auto take = [&](double now) {
    EXPECT_FALSE(queue.Add(lane, CallOf(1)).has_value());
    const auto next = queue.TakeToDecode();
    queue.Decoded(lane, next->second, absl::OkStatus());
    return queue.TakeBatch(At(now));
  };
  batches[0] = take(1), batches[1] = take(1.5);
  EXPECT_FALSE(queue.Add(lane, CallOf(1)).has_value());
  for (int i = 0; i < 40; ++i) {  // each takes a second, one ends every half
    const double now = 2 + 0.5 * i;
    queue.Computed(*batches[i % 2], At(now));
    batches[i % 2] = take(now);
  }
  EXPECT_NEAR(lane->image_seconds, 0.5, 0.05);
}

TEST_F(BatchQueueTest, ACallThatWasReadWhileItsModelWasRetiredIsAnswered) {
  const LanePtr lane = AddLane(1);
  queue_.Retire(lane);
  EXPECT_THAT(queue_.lanes(), testing::IsEmpty());
  const CallPtr late = Add(lane, 1);
  EXPECT_EQ(ComputeOne(1), lane);
  EXPECT_TRUE(late->finished);
  EXPECT_THAT(queue_.lanes(), testing::IsEmpty());
}

TEST_F(BatchQueueTest, ARetiredModelAnswersWhatItHasAndIsForgotten) {
  const LanePtr old = AddLane(1), next = AddLane(1);
  const CallPtr before = Add(old, 2);
  queue_.Retire(old);
  EXPECT_THAT(queue_.lanes(), SizeIs(2));
  while (ComputeOne(1) != nullptr) {
  }
  EXPECT_TRUE(before->finished);
  EXPECT_THAT(queue_.lanes(), testing::ElementsAre(next));
  queue_.Retire(next);
  EXPECT_THAT(queue_.lanes(), testing::IsEmpty());
}

}  // namespace
}  // namespace tutti::scoring
