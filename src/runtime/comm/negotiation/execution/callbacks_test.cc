// Callbacks that take their time: no rank is lost, and nobody but a callback waits for them.
// Covers: operation.cc.
#include "runtime/comm/negotiation/execution/callbacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/negotiation/negotiation.h"

namespace tutti::comm {
namespace {

const absl::Duration kShortPeerTimeout = base::PatientTimeout(absl::Milliseconds(800));

// Something that happens once, on one thread, and that others wait for.
class OneTimeEvent {
 public:
  void Happen() { happened_.set_value(); }
  bool Await() const {
    return future_.wait_for(absl::ToChronoSeconds(base::Patient(absl::Seconds(60)))) == kReady;
  }

 private:
  static constexpr auto kReady = std::future_status::ready;
  std::promise<void> happened_;
  std::shared_future<void> future_ = happened_.get_future().share();
};

TEST(Callbacks, AreCalledInOrderAndAllBeforeTheEnd) {
  std::vector<int> order, expected;
  {
    Callbacks callbacks;
    for (int i = 0; i < 100; ++i) {
      callbacks.Add([&order, i] { order.push_back(i); });
      expected.push_back(i);
    }
  }
  EXPECT_EQ(order, expected);
}

std::vector<GroupOptions> Ranks(int size) {
  std::vector<GroupOptions> options = OptionsFor(size, GroupOptions::Transport::kAuto);
  for (GroupOptions& one : options) one.peer_timeout = kShortPeerTimeout;
  return options;
}

std::shared_ptr<Operation> Sum(Negotiation& negotiation, const char* name, float& value) {
  Submission submission;
  submission.request.kind = Kind::kAllReduce;
  submission.request.name = name;
  submission.request.parts = {{DataType::kFloat32, {1}}};
  submission.inputs = {&value};
  submission.outputs = {&value};
  const OperationOr operation = negotiation.Submit(std::move(submission));
  EXPECT_TRUE(operation.ok()) << operation.status();
  return *operation;
}

// Ranks 0 and 1 wait for rank 2; the callbacks that tell them so return only when all is over.
TEST(Callbacks, AStallCallbackThatDoesNotReturnCostsNoRank) {
  OneTimeEvent told[2], silence_is_over, all_is_over;
  std::atomic<int> done = 0;
  OnEveryRank(Ranks(3), [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
    ASSERT_TRUE(group.ok()) << group.status();
    NegotiationOptions options;
    options.log_stalls = false;
    options.stall.warning = absl::Milliseconds(50);
    std::atomic<bool> first = true;
    options.on_stall = [&](const Stall&) {
      if (rank == 2 || !first.exchange(false)) return;
      told[rank].Happen();
      EXPECT_TRUE(all_is_over.Await());
    };
    const auto negotiation = Negotiation::Start(*std::move(group), options);
    float value = 1;
    if (rank == 2) {
      EXPECT_TRUE(silence_is_over.Await());
    }
    const auto sum = Sum(*negotiation, "late", value);
    if (rank == 0) {
      EXPECT_TRUE(told[0].Await() && told[1].Await());
      // Were a heartbeat to wait for its callback, its rank would be lost by now.
      const absl::Status status = sum->Wait(base::Deadline::After(2 * kShortPeerTimeout));
      EXPECT_TRUE(absl::IsDeadlineExceeded(status) && !sum->Done()) << status;
      silence_is_over.Happen();
    }
    const absl::Status status = sum->Wait(Soon());
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(value, 3);
    if (++done == 3) all_is_over.Happen();
  });
}

// Rank 0 leaves, which ends the negotiation of the others. The first callback of all returns only
// when every operation is over.
TEST(Callbacks, AnOperationIsOverThoughTheCallbackOfOneBeforeItHasNotReturned) {
  std::atomic<int> submitted = 0;
  OneTimeEvent all_submitted;
  OnEveryRank(Ranks(3), [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
    ASSERT_TRUE(group.ok()) << group.status();
    const auto negotiation = Negotiation::Start(*std::move(group), {});
    if (rank == 0) {
      EXPECT_TRUE(all_submitted.Await());
      return;
    }
    std::vector<float> values(20, 1);
    std::vector<std::shared_ptr<Operation>> sums;
    OneTimeEvent first_is_told, others_are_over;
    std::atomic<int> told = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      sums.push_back(Sum(*negotiation, std::to_string(i).c_str(), values[i]));
      sums.back()->WhenDone([&] {
        if (told++ > 0) return;
        first_is_told.Happen();
        EXPECT_TRUE(others_are_over.Await());
      });
    }
    if (++submitted == 2) all_submitted.Happen();
    EXPECT_TRUE(first_is_told.Await());
    for (const auto& sum : sums) {
      const absl::Status status =
          sum->Wait(base::Deadline::After(base::Patient(absl::Seconds(30))));
      EXPECT_EQ(LostRank(status), 0) << status;
    }
    EXPECT_EQ(told, 1);
    others_are_over.Happen();
    negotiation->Shutdown().IgnoreError();
    EXPECT_EQ(told, 20) << "all are told before the session is over";
  });
}

}  // namespace
}  // namespace tutti::comm
