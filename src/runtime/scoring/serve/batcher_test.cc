// Covers: batch_plan.cc.
#include "runtime/scoring/serve/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/numbers.h"
#include "absl/synchronization/notification.h"
#include "base/deadline.h"
#include "base/test_patience.h"
#include "runtime/scoring/serve/batch_plan.h"

namespace tutti::scoring {
namespace {

// Answers with the pixel that it was sent; an image is a number as text. It may be held up.
class EchoModel final : public Servable {
 public:
  size_t values() const override { return 1; }
  absl::StatusOr<data::ImageSize> Decode(absl::string_view encoded, float* pixels) override {
    if (!absl::SimpleAtof(encoded, pixels)) return absl::InvalidArgumentError("not a number");
    return data::ImageSize{3, 4};
  }
  std::vector<Answer> Run(std::span<const float* const> images) override {
    absl::MutexLock lock(&mutex_);
    ++running_;
    mutex_.Await(absl::Condition(&open_));
    --running_;
    sizes_.push_back(images.size());
    std::vector<Answer> answers(images.size());
    for (size_t i = 0; i < images.size(); ++i) answers[i].scores = {*images[i]};
    return answers;
  }
  void Hold(bool hold) {
    absl::MutexLock lock(&mutex_);
    open_ = !hold;
  }
  void AwaitRun() {
    absl::MutexLock lock(&mutex_);
    const auto is_running = [this] { return running_ > 0; };
    ASSERT_TRUE(
        mutex_.AwaitWithTimeout(absl::Condition(&is_running), base::Patient(absl::Seconds(30))));
  }
  std::vector<size_t> sizes() {
    absl::MutexLock lock(&mutex_);
    return sizes_;
  }

 private:
  absl::Mutex mutex_;
  bool open_ = true;
  int running_ = 0;
  std::vector<size_t> sizes_;
};

struct Waiting {
  explicit Waiting(std::vector<std::string> images) : call(std::make_shared<Call>()) {
    for (std::string& image : images) {
      call->images.emplace_back();
      call->images.back().encoded = std::move(image);
    }
    call->wake = [this] { finished.Notify(); };
  }
  void Await() {
    ASSERT_TRUE(finished.WaitForNotificationWithTimeout(base::Patient(absl::Seconds(30))));
  }
  CallPtr call;
  absl::Notification finished;
};

TEST(Batcher, AnswersEveryImageOfEveryCall) {
  const auto model = std::make_shared<EchoModel>();
  std::vector<std::unique_ptr<Waiting>> all;
  std::atomic<size_t> computed = 0;
  {
    Batcher batcher({.workers = 2, .decoders = 2});
    const LanePtr lane = batcher.AddModel(
        model, 4, 0.001, [&](const ComputedBatch& batch) { computed += batch.images; });
    for (int i = 0; i < 100; ++i) {
      all.push_back(std::make_unique<Waiting>(
          std::vector<std::string>{std::to_string(i), std::to_string(i + 0.5)}));
      ASSERT_FALSE(batcher.Add(lane, all.back()->call, absl::InfiniteDuration()).has_value());
    }
    for (int i = 0; i < 100; ++i) {
      all[static_cast<size_t>(i)]->Await();
      const Call& call = *all[static_cast<size_t>(i)]->call;
      EXPECT_EQ(call.images[0].answer.scores[0], static_cast<float>(i));
      EXPECT_EQ(call.images[1].answer.scores[0], static_cast<float>(i) + 0.5f);
      EXPECT_EQ(call.images[1].size, (data::ImageSize{3, 4}));
    }
    EXPECT_EQ(batcher.Backlog(lane), 0u);
  }
  EXPECT_EQ(computed, 200u);
}

TEST(Batcher, ImagesThatComeWhileTheModelComputesGoTogether) {
  const auto model = std::make_shared<EchoModel>();
  Batcher batcher({});
  const LanePtr lane = batcher.AddModel(model, 8, 0.001, nullptr);
  model->Hold(true);
  Waiting first({"1"}), second({"2", "3"}), third({"4"});
  ASSERT_FALSE(batcher.Add(lane, first.call, absl::InfiniteDuration()).has_value());
  model->AwaitRun();
  ASSERT_FALSE(batcher.Add(lane, second.call, absl::InfiniteDuration()).has_value());
  ASSERT_FALSE(batcher.Add(lane, third.call, absl::InfiniteDuration()).has_value());
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(30), [&] { return batcher.Ready(lane) == 3; }));
  model->Hold(false);
  third.Await();
  EXPECT_THAT(model->sizes(), testing::ElementsAre(1, 3));
}

TEST(Batcher, SaysWhyAnImageCannotBeRead) {
  Batcher batcher({});
  const LanePtr lane = batcher.AddModel(std::make_shared<EchoModel>(), 8, 0.001, nullptr);
  Waiting bad({"1", "one"}), good({"2"});
  ASSERT_FALSE(batcher.Add(lane, bad.call, absl::InfiniteDuration()).has_value());
  ASSERT_FALSE(batcher.Add(lane, good.call, absl::InfiniteDuration()).has_value());
  bad.Await();
  good.Await();
  EXPECT_EQ(bad.call->status.message(), "image 2 of 2: not a number");
  EXPECT_TRUE(good.call->status.ok());
}

// Pixels that a client has sent fill what decoders may work ahead by: when it leaves, others go on.
TEST(Batcher, AClientThatLeavesHoldsUpNobody) {
  const auto model = std::make_shared<EchoModel>();
  Batcher batcher({});
  const LanePtr lane = batcher.AddModel(model, 1, 0.001, nullptr);
  model->Hold(true);
  Waiting running({"1"}), leaves(std::vector<std::string>(100, "")), stays({"2"});
  for (Image& image : leaves.call->images) image.pixels = {3};
  ASSERT_FALSE(batcher.Add(lane, running.call, absl::InfiniteDuration()).has_value());
  model->AwaitRun();
  ASSERT_FALSE(batcher.Add(lane, leaves.call, absl::InfiniteDuration()).has_value());
  ASSERT_FALSE(batcher.Add(lane, stays.call, absl::InfiniteDuration()).has_value());
  EXPECT_EQ(batcher.Withdraw(leaves.call), Withdrawal::kWithdrawn);
  EXPECT_EQ(batcher.Backlog(lane), 2u);
  model->Hold(false);
  stays.Await();
  EXPECT_EQ(stays.call->images[0].answer.scores[0], 2);
}

TEST(Batcher, EndsWhileCallsWait) {
  const auto model = std::make_shared<EchoModel>();
  Waiting first({"1"}), second({"2"});
  model->Hold(true);
  std::thread opener;
  {
    Batcher batcher({});
    const LanePtr lane = batcher.AddModel(model, 1, 0.001, nullptr);
    ASSERT_FALSE(batcher.Add(lane, first.call, absl::InfiniteDuration()).has_value());
    model->AwaitRun();
    ASSERT_FALSE(batcher.Add(lane, second.call, absl::InfiniteDuration()).has_value());
    opener = std::thread([&] { model->Hold(false); });
  }
  opener.join();
  EXPECT_TRUE(first.call->finished);
}

// Takes a set time for each image, by a clock of its own that the plan cannot see: it sleeps.
class SlowModel final : public Servable {
 public:
  size_t values() const override { return 1; }
  absl::StatusOr<data::ImageSize> Decode(absl::string_view, float*) override {
    return data::ImageSize{};
  }
  std::vector<Answer> Run(std::span<const float* const> images) override {
    largest = std::max(largest, images.size());
    const base::Deadline end =
        base::Deadline::After(absl::Milliseconds(5) * static_cast<int64_t>(images.size()));
    while (!end.Expired()) {
    }
    return std::vector<Answer>(images.size());
  }
  size_t largest = 0;
};

TEST(BatchPlan, EndsAtTheFirstSizeThatTakesTooLong) {
  SlowModel model;
  const BatchPlan plan = MeasureBatches(model, absl::ZeroDuration());
  EXPECT_GE(plan.times.front().second, absl::Milliseconds(5));
  EXPECT_EQ(plan.max_latency, 2 * (plan.times.front().second + absl::Milliseconds(1)));
  EXPECT_GE(plan.limit, 1u);
  EXPECT_LE(plan.limit, model.largest);
  EXPECT_GE(plan.image_seconds(), 0.005);
  const BatchPlan patient = MeasureBatches(model, absl::Hours(1));
  EXPECT_EQ(patient.limit, 64u);
  EXPECT_THAT(patient.Describe(),
              testing::HasSubstr("batches up to 64 images in at most 3600000.0 ms ("));
  const BatchPlan hasty = MeasureBatches(model, absl::Nanoseconds(1));
  EXPECT_EQ(hasty.limit, 1u) << "a lone image is always computed";
  EXPECT_THAT(hasty.Describe(), testing::HasSubstr("one image at a time ("));
}

}  // namespace
}  // namespace tutti::scoring
