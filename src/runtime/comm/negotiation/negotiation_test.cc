// Named collectives over real groups: threads of one process, and processes of which one is lost.
// Covers: negotiation_engine.cc, negotiation_thread.cc, submissions.cc, execution/runner.cc,
// execution/run_reductions.cc, execution/run_moves.cc, execution/tensor_timeline.cc,
// execution/response_run.h, execution/timeline_slot.h.
#include "runtime/comm/negotiation/negotiation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Transport = GroupOptions::Transport;
using Floats = std::vector<float>;

// Runs `body` on every rank, with a negotiation over a group of `size`.
void OnRanks(int size, const std::function<void(Negotiation&)>& body,
             const NegotiationOptions& options = {}) {
  OnEveryRank(OptionsFor(size, Transport::kAuto),
              [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                ASSERT_TRUE(group.ok()) << group.status();
                const auto negotiation = Negotiation::Start(*std::move(group), options);
                body(*negotiation);
              });
}

Submission Of(Kind kind, const std::string& name) {
  Submission submission;
  submission.request.kind = kind;
  submission.request.name = name;
  return submission;
}

Submission SumOf(const std::string& name, Floats& data) {
  Submission submission = Of(Kind::kAllReduce, name);
  submission.request.parts = {{DataType::kFloat32, {static_cast<int64_t>(data.size())}}};
  submission.inputs = {data.data()};
  submission.outputs = {data.data()};
  return submission;
}

std::shared_ptr<Operation> MustSubmit(Negotiation& negotiation, Submission submission) {
  OperationOr operation = negotiation.Submit(std::move(submission));
  EXPECT_TRUE(operation.ok()) << operation.status();
  return operation.ok() ? *operation : nullptr;
}

absl::Status RunOne(Negotiation& negotiation, Submission submission) {
  const OperationOr operation = negotiation.Submit(std::move(submission));
  return operation.ok() ? (*operation)->Wait(Soon()) : operation.status();
}

int64_t AddSet(Negotiation& negotiation, std::vector<int> ranks) {
  const auto added = negotiation.AddProcessSet(std::move(ranks));
  EXPECT_TRUE(added.ok() && (*added)->Wait(Soon()).ok());
  return added.ok() ? (*added)->value() : -1;
}

TEST(NegotiationTest, EveryRankMaySubmitInItsOwnOrderFromManyThreads) {
  constexpr int kThreads = 3, kTensors = 300, kRounds = 3;
  OnRanks(4, [](Negotiation& negotiation) {
    std::vector<std::thread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&negotiation, thread] {
        std::mt19937 random(negotiation.rank() * 100 + thread);
        std::vector<int> order(kTensors);
        std::iota(order.begin(), order.end(), 0);
        for (int round = 0; round < kRounds; ++round) {
          std::shuffle(order.begin(), order.end(), random);
          std::vector<Floats> data(kTensors);
          std::vector<std::shared_ptr<Operation>> operations;
          for (const int i : order) {
            data[i].assign(i % 50 + 1, static_cast<float>(i + negotiation.rank()));
            operations.push_back(
                MustSubmit(negotiation, SumOf(absl::StrCat(thread, ".", i), data[i])));
          }
          for (const auto& operation : operations) {
            const absl::Status status = operation->Wait(Soon());
            ASSERT_TRUE(status.ok()) << status;
          }
          for (int i = 0; i < kTensors; ++i) {
            ASSERT_EQ(data[i], Floats(i % 50 + 1, static_cast<float>(4 * i + 6)));
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
}

TEST(NegotiationTest, AGroupOfOneNegotiatesWithItself) {
  OnRanks(1, [](Negotiation& negotiation) {
    Floats data = {1, 2};
    EXPECT_TRUE(RunOne(negotiation, SumOf("a", data)).ok());
    EXPECT_THAT(data, ElementsAre(1, 2));
    EXPECT_TRUE(RunOne(negotiation, Of(Kind::kBarrier, "")).ok());
  });
}

TEST(NegotiationTest, GroupsOfTensorsAreScaledAndReducedAllTogether) {
  OnRanks(3, [](Negotiation& negotiation) {
    Floats small(7, 2), large(400000, 1), result(7), untouched(7, 2);
    std::vector<int64_t> integers(5, 10);
    Submission group = Of(Kind::kAllReduce, "group");
    group.request.prescale = 0.5;
    group.request.postscale = 10;
    group.request.parts = {{DataType::kFloat32, {7}},
                           {DataType::kInt64, {5}},
                           {DataType::kFloat32, {400, 1000}},
                           {DataType::kFloat32, {0, 3}}};
    group.inputs = {small.data(), integers.data(), large.data(), nullptr};
    group.outputs = {result.data(), integers.data(), large.data(), nullptr};
    for (int round = 0; round < 3; ++round) {
      integers.assign(5, 10);
      large.assign(large.size(), 1);
      ASSERT_TRUE(RunOne(negotiation, group).ok());
      EXPECT_EQ(result, Floats(7, 30));
      EXPECT_EQ(small, untouched);
      EXPECT_EQ(integers, std::vector<int64_t>(5, 150));
      EXPECT_EQ(large, Floats(large.size(), 15));
    }
  });
}

TEST(NegotiationTest, WhatIsEncodedOnItsWayKeepsWhatRoundingLost) {
  OnRanks(3, [](Negotiation& negotiation) {
    const auto feedback = std::make_shared<ErrorFeedback>();
    double total = 0;
    constexpr int kSteps = 50;
    for (int step = 0; step < kSteps; ++step) {
      Floats data(1000, 0.001F);
      data[0] = 1;  // a step of int8 is 1/127 here: 0.001 is rounded away
      Submission mean = SumOf("gradient", data);
      mean.request.op = ReduceOp::kMean;
      mean.request.wire = Wire::kInt8;
      mean.feedback = feedback;
      ASSERT_EQ(RunOne(negotiation, std::move(mean)), absl::OkStatus());
      EXPECT_NEAR(data[0], 1, 0.01);
      total += data[1];
    }
    EXPECT_NEAR(total / kSteps, 0.001, 0.0005);
    Floats data(4, 1);
    Submission greatest = SumOf("greatest", data);
    greatest.request.op = ReduceOp::kMax;
    greatest.request.wire = Wire::kInt8;
    EXPECT_TRUE(absl::IsInvalidArgument(negotiation.Submit(greatest).status()));
  });
}

TEST(NegotiationTest, AllGatherTakesDifferentRowsAndAllocatesAfterwards) {
  OnRanks(3, [](Negotiation& negotiation) {
    const int rank = negotiation.rank();
    for (int round = 0; round < 2; ++round) {
      const int64_t rows = (rank + round) % 3;
      Floats input(rows * 2, static_cast<float>(rank)), output;
      Submission gather = Of(Kind::kAllGather, "gather");
      gather.request.parts = {{DataType::kFloat32, {0, 2}}};
      gather.rows = {rows};
      gather.inputs = {input.data()};
      gather.allocate = [&](size_t, const std::vector<int64_t>& shape, size_t bytes) {
        EXPECT_EQ(bytes, 3 * 2 * sizeof(float));
        EXPECT_THAT(shape, ElementsAre(3, 2));
        output.resize(6);
        return output.data();
      };
      const auto operation = MustSubmit(negotiation, std::move(gather));
      ASSERT_TRUE(operation->Wait(Soon()).ok());
      EXPECT_THAT(operation->received(), ElementsAre(round, (1 + round) % 3, (2 + round) % 3));
      EXPECT_EQ(output, round == 0 ? (Floats{1, 1, 2, 2, 2, 2}) : (Floats{0, 0, 1, 1, 1, 1}));
    }
  });
}

TEST(NegotiationTest, BroadcastIsFromARankOfTheWorldAndLeavesTheRootsInput) {
  OnRanks(3, [](Negotiation& negotiation) {
    std::vector<std::shared_ptr<Operation>> operations;
    std::vector<Floats> inputs(20), outputs(20);
    for (int i = 0; i < 20; ++i) {
      inputs[i].assign(5, static_cast<float>(100 * negotiation.rank() + i));
      outputs[i].resize(5);
      Submission broadcast = SumOf(absl::StrCat("b", i), inputs[i]);
      broadcast.request.kind = Kind::kBroadcast;
      broadcast.request.root = 2;
      broadcast.outputs = {outputs[i].data()};
      operations.push_back(MustSubmit(negotiation, std::move(broadcast)));
    }
    for (int i = 0; i < 20; ++i) {
      ASSERT_EQ(operations[i]->Wait(Soon()), absl::OkStatus());
      EXPECT_EQ(outputs[i], Floats(5, static_cast<float>(200 + i)));
      EXPECT_EQ(inputs[i], Floats(5, static_cast<float>(100 * negotiation.rank() + i)));
    }
  });
}

TEST(NegotiationTest, AllToAllTellsTheRowsThatCame) {
  OnRanks(3, [](Negotiation& negotiation) {
    const int rank = negotiation.rank();
    Submission exchange = Of(Kind::kAllToAll, "a2a");
    exchange.splits = {rank, 1, 2};  // rows to ranks 0, 1, 2
    const int64_t rows = rank + 3;
    std::vector<int32_t> input(rows * 2, rank);
    exchange.request.parts = {{DataType::kInt32, {0, 2}}};
    exchange.rows = {rows};
    exchange.inputs = {input.data()};
    const auto operation = MustSubmit(negotiation, std::move(exchange));
    ASSERT_TRUE(operation->Wait(Soon()).ok());
    const std::vector<int64_t> expected[] = {{0, 1, 2}, {1, 1, 1}, {2, 2, 2}};
    EXPECT_EQ(operation->received(), expected[rank]);
    const Output& output = operation->outputs()[0];
    EXPECT_EQ(output.shape[0], std::accumulate(expected[rank].begin(), expected[rank].end(), 0));
    const int32_t* const values = static_cast<const int32_t*>(output.data);
    EXPECT_EQ(values[output.shape[0] * 2 - 1], 2);
  });
}

TEST(NegotiationTest, ReduceScatterDealsRowsOutWithTheRestToTheFirst) {
  OnRanks(3, [](Negotiation& negotiation) {
    Floats input(5 * 2);
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>(i);
    Submission scatter = Of(Kind::kReduceScatter, "rs");
    scatter.request.parts = {{DataType::kFloat32, {5, 2}}};
    scatter.request.prescale = 2;
    scatter.inputs = {input.data()};
    const auto operation = MustSubmit(negotiation, std::move(scatter));
    ASSERT_TRUE(operation->Wait(Soon()).ok());
    const Output& output = operation->outputs()[0];
    const int64_t first[] = {0, 2, 4};
    EXPECT_THAT(output.shape, ElementsAre(negotiation.rank() < 2 ? 2 : 1, 2));
    const float* const values = static_cast<const float*>(output.data);
    EXPECT_EQ(values[1], 6 * static_cast<float>(first[negotiation.rank()] * 2 + 1));
  });
}

TEST(NegotiationTest, AMismatchFailsThatTensorOnAllRanksAndTheGroupLivesOn) {
  OnRanks(3, [](Negotiation& negotiation) {
    Floats wrong(negotiation.rank() == 1 ? 3 : 4, 1), right(4, 1);
    const auto bad = MustSubmit(negotiation, SumOf("wrong", wrong));
    const auto good = MustSubmit(negotiation, SumOf("right", right));
    const absl::Status status = bad->Wait(Soon());
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_THAT(std::string(status.message()), HasSubstr("tensor \"wrong\": rank "));
    EXPECT_THAT(std::string(status.message()), HasSubstr("float32[3]"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("float32[4]"));
    EXPECT_TRUE(good->Wait(Soon()).ok());
    EXPECT_EQ(right, Floats(4, 3));
    EXPECT_TRUE(RunOne(negotiation, SumOf("wrong", right)).ok());
  });
}

TEST(NegotiationTest, ANameThatIsOutstandingIsRefused) {
  std::atomic<bool> refused = false;
  OnRanks(2, [&](Negotiation& negotiation) {
    Floats data(4, 1);
    if (negotiation.rank() == 1) {
      base::AwaitPatiently(absl::Seconds(30), [&] { return refused.load(); });
    }
    const auto first = MustSubmit(negotiation, SumOf("twice", data));
    if (negotiation.rank() == 0) {
      const auto again = negotiation.Submit(SumOf("twice", data));
      EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
      refused = true;
    }
    EXPECT_EQ(first->Wait(Soon()), absl::OkStatus());
    EXPECT_EQ(RunOne(negotiation, SumOf("twice", data)), absl::OkStatus());
  });
}

TEST(NegotiationTest, WhatMakesNoSenseIsRefusedAtOnce) {
  OnRanks(2, [](Negotiation& negotiation) {
    Floats data(4, 1);
    Submission elsewhere = SumOf("x", data);
    elsewhere.request.set = 9;
    EXPECT_TRUE(absl::IsNotFound(negotiation.Submit(elsewhere).status()));
    Submission rootless = SumOf("x", data);
    rootless.request.kind = Kind::kBroadcast;
    rootless.request.root = 2;
    EXPECT_TRUE(absl::IsInvalidArgument(negotiation.Submit(rootless).status()));
    Submission split = Of(Kind::kAllToAll, "x");
    split.request.parts = {{DataType::kFloat32, {0}}};
    split.rows = {4};
    split.inputs = {data.data()};
    split.splits = {3, 3};
    EXPECT_TRUE(absl::IsInvalidArgument(negotiation.Submit(split).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(negotiation.AddProcessSet({0, 5}).status()));
  });
}

TEST(NegotiationTest, JoinLetsTheOthersGoOnAndTellsWhoCameLast) {
  OnRanks(3, [](Negotiation& negotiation) {
    const int rank = negotiation.rank();
    for (int epoch = 0; epoch < 3; ++epoch) {
      const int batches = 2 + (rank + epoch) % 3;  // uneven
      for (int batch = 0; batch < batches; ++batch) {
        Floats sum(5, 1), least(5, static_cast<float>(10 + rank)), mean(2, 3);
        Submission minimum = SumOf("least", least), average = SumOf("mean", mean);
        minimum.request.op = ReduceOp::kMin;
        average.request.op = ReduceOp::kMean;
        const auto a = MustSubmit(negotiation, SumOf("sum", sum));
        const auto b = MustSubmit(negotiation, std::move(minimum));
        const auto c = MustSubmit(negotiation, std::move(average));
        ASSERT_TRUE(a->Wait(Soon()).ok() && b->Wait(Soon()).ok() && c->Wait(Soon()).ok());
        const int present = batch < 2 ? 3 : batch < 3 ? 2 : 1;
        ASSERT_EQ(sum, Floats(5, static_cast<float>(present)));
        ASSERT_EQ(mean, Floats(2, static_cast<float>(present)));
        ASSERT_GE(least[0], 10) << "a rank that has joined is not the minimum";
      }
      const auto join = MustSubmit(negotiation, Of(Kind::kJoin, ""));
      ASSERT_TRUE(join->Wait(Soon()).ok());
      EXPECT_EQ(join->value(), (2 - epoch + 3) % 3) << "whose batches were most";
    }
  });
}

TEST(NegotiationTest, ProcessSetsWorkBesideEachOtherAndAreRemoved) {
  OnRanks(4, [](Negotiation& negotiation) {
    const int rank = negotiation.rank();
    const int64_t even = AddSet(negotiation, {2, 0});
    const int64_t odd = AddSet(negotiation, {1, 3});
    const int64_t alone = AddSet(negotiation, {3});
    EXPECT_THAT(negotiation.ProcessSets(), ElementsAre(0, even, odd, alone));
    EXPECT_THAT(*negotiation.RanksOf(static_cast<int>(even)), ElementsAre(0, 2));
    const auto again = negotiation.AddProcessSet({0, 2});
    EXPECT_TRUE(absl::IsAlreadyExists((*again)->Wait(Soon())));
    for (int round = 0; round < 50; ++round) {
      Floats mine(3, static_cast<float>(rank)), all(3, 1);
      Submission inside = SumOf("t", mine);
      inside.request.set = static_cast<int>(rank % 2 == 0 ? even : odd);
      const auto a = MustSubmit(negotiation, std::move(inside));
      const auto b = MustSubmit(negotiation, SumOf("t", all));
      ASSERT_TRUE(a->Wait(Soon()).ok() && b->Wait(Soon()).ok());
      ASSERT_EQ(mine, Floats(3, rank % 2 == 0 ? 2 : 4));
      ASSERT_EQ(all, Floats(3, 4));
    }
    Floats value(1, 5);
    if (rank % 2 == 0) {
      Submission broadcast = SumOf("root", value);
      broadcast.request.kind = Kind::kBroadcast;
      broadcast.request.set = static_cast<int>(even);
      broadcast.request.root = 2;
      value[0] = static_cast<float>(rank);
      ASSERT_TRUE(RunOne(negotiation, std::move(broadcast)).ok());
      EXPECT_EQ(value[0], 2) << "the root is a rank of the world";
    }
    const auto removed = negotiation.RemoveProcessSet(static_cast<int>(even));
    ASSERT_TRUE((*removed)->Wait(Soon()).ok());
    EXPECT_THAT(negotiation.ProcessSets(), ElementsAre(0, odd, alone));
  });
}

TEST(NegotiationTest, MoreNamesThanOneMessageHoldsAreToldInSeveral) {
  OnRanks(2, [](Negotiation& negotiation) {
    constexpr int kTensors = 1500;
    std::vector<Floats> data(kTensors, Floats(2, 1));
    std::vector<std::shared_ptr<Operation>> operations;
    for (int i = 0; i < kTensors; ++i) {
      const std::string name = absl::StrCat(std::string(2000, 'n'), i);
      operations.push_back(MustSubmit(negotiation, SumOf(name, data[i])));
    }
    for (int i = 0; i < kTensors; ++i) {
      ASSERT_EQ(operations[i]->Wait(Soon()), absl::OkStatus());
      ASSERT_EQ(data[i], Floats(2, 2));
    }
  });
}

TEST(NegotiationTest, AStallIsToldOnEveryRank) {
  std::mutex mutex;
  std::map<std::string, int> told;
  NegotiationOptions options;
  options.log_stalls = false;
  options.stall.warning = absl::Milliseconds(100);
  options.on_stall = [&](const Stall& stall) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (stall.missing == std::vector<int>{2}) ++told[stall.tensor];
  };
  OnRanks(
      3,
      [&](Negotiation& negotiation) {
        Floats data(1, 1);
        const auto enough = [&] {
          const std::lock_guard<std::mutex> lock(mutex);
          return told["late"] >= 3;
        };
        if (negotiation.rank() == 2) base::AwaitPatiently(absl::Seconds(30), enough);
        EXPECT_TRUE(RunOne(negotiation, SumOf("late", data)).ok());
      },
      options);
  EXPECT_GE(told["late"], 3);
}

TEST(NegotiationTest, WhoShutsDownIsNamedToThoseWhoNeedIt) {
  OnRanks(3, [](Negotiation& negotiation) {
    Floats data(1, 1);
    EXPECT_TRUE(RunOne(negotiation, SumOf("a", data)).ok());
    if (negotiation.rank() == 1) {
      const auto mine = MustSubmit(negotiation, SumOf("mine", data));
      EXPECT_TRUE(negotiation.Shutdown().ok());
      EXPECT_TRUE(absl::IsCancelled(mine->Wait(Soon())));
      EXPECT_FALSE(negotiation.Submit(SumOf("b", data)).ok());
      return;
    }
    const absl::Status status = RunOne(negotiation, SumOf("b", data));
    EXPECT_TRUE(absl::IsCancelled(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::AnyOf(HasSubstr("rank 1 has shut down"),
                                                              HasSubstr("rank 0 has shut down")));
  });
}

// What `kind` is of, by name "last", on this rank: one float, or row, that is its rank.
Submission LastOf(Kind kind, Negotiation& negotiation, Floats& data) {
  data.assign(kind == Kind::kReduceScatter || kind == Kind::kAllToAll ? negotiation.size() : 1,
              static_cast<float>(negotiation.rank()));
  Submission submission = SumOf("last", data);
  submission.request.kind = kind;
  submission.request.root = kind == Kind::kBroadcast ? 1 : 0;
  submission.outputs.clear();
  if (kind == Kind::kAllGather || kind == Kind::kAllToAll) {
    submission.request.parts[0].shape[0] = 0;
    submission.rows = {static_cast<int64_t>(data.size())};
  }
  if (kind == Kind::kAllToAll) submission.splits.assign(negotiation.size(), 1);
  return submission;
}

// Rank 1 is the last to announce it, and shuts down at once: its turn is still on its way then.
void ExpectWholeBesideShutdown(Kind kind, bool known, const Floats& expected) {
  std::atomic<bool> stalled = false;
  OnEveryRank(OptionsFor(3, Transport::kAuto), [&](int rank, auto group) {
    ASSERT_TRUE(group.ok()) << group.status();
    NegotiationOptions options;
    options.log_stalls = false;
    options.stall.warning = absl::Milliseconds(20);
    if (rank == 1) {
      options.on_stall = [&](const Stall& stall) {
        if (stall.missing == std::vector<int>{1}) stalled = true;
      };
    }
    const auto negotiation = Negotiation::Start(*std::move(group), options);
    Floats data;
    if (known) {
      ASSERT_TRUE(RunOne(*negotiation, LastOf(kind, *negotiation, data)).ok());
    }
    if (rank == 1) stalled = false;
    if (rank == 1) base::AwaitPatiently(absl::Seconds(30), [&] { return stalled.load(); });
    const auto last = MustSubmit(*negotiation, LastOf(kind, *negotiation, data));
    const absl::Status left = rank == 1 ? negotiation->Shutdown() : absl::OkStatus();
    EXPECT_EQ(left, absl::OkStatus());
    ASSERT_EQ(last->Wait(Soon()), absl::OkStatus()) << NameOf(kind);
    const float* const values = static_cast<const float*>(last->outputs()[0].data);
    EXPECT_EQ(Floats(values, values + expected.size()), expected) << NameOf(kind);
  });
}

TEST(NegotiationTest, WhatAllHaveAnnouncedIsRunWholeThoughOneShutsDown) {
  for (const bool known : {false, true}) {
    ExpectWholeBesideShutdown(Kind::kAllReduce, known, {3});
    ExpectWholeBesideShutdown(Kind::kAllGather, known, {0, 1, 2});
    ExpectWholeBesideShutdown(Kind::kBroadcast, known, {1});
    ExpectWholeBesideShutdown(Kind::kAllToAll, known, {0, 1, 2});
    ExpectWholeBesideShutdown(Kind::kReduceScatter, known, {3});
  }
}

TEST(NegotiationTest, BesideAJoinedRankWhatNeedsItFailsAndTheGroupLivesOn) {
  OnRanks(3, [](Negotiation& negotiation) {
    Floats data;
    std::shared_ptr<Operation> join;
    if (negotiation.rank() == 1) join = MustSubmit(negotiation, Of(Kind::kJoin, "any name"));
    for (const Kind kind : {Kind::kAllGather, Kind::kBroadcast}) {
      if (join != nullptr) break;
      const absl::Status status = RunOne(negotiation, LastOf(kind, negotiation, data));
      EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 has joined"));
    }
    if (join == nullptr) join = MustSubmit(negotiation, Of(Kind::kJoin, ""));
    EXPECT_EQ(join->Wait(Soon()), absl::OkStatus());
  });
}

TEST(NegotiationTest, TheGroupIsGivenBackForPlainCollectives) {
  OnRanks(3, [](Negotiation& negotiation) {
    Floats data(1, 1);
    EXPECT_TRUE(RunOne(negotiation, SumOf("a", data)).ok());
    const std::shared_ptr<Communicator> group = negotiation.GiveBack();
    ASSERT_NE(group, nullptr);
    EXPECT_EQ(group->AllReduce(data.data(), 1, DataType::kFloat32, ReduceOp::kSum, Soon()),
              absl::OkStatus());
    EXPECT_EQ(data[0], 9);
    EXPECT_FALSE(negotiation.Submit(SumOf("b", data)).ok());
    EXPECT_EQ(negotiation.GiveBack(), nullptr);
  });
}

TEST(NegotiationTest, TheTimelineTellsTheLifeOfATensor) {
  const base::TemporaryDirectory folder;
  OnRanks(2, [&](Negotiation& negotiation) {
    const std::string path = (folder.path() / absl::StrCat(negotiation.rank())).string();
    Floats data(10, 1), other(10, 1);
    ASSERT_TRUE(RunOne(negotiation, SumOf("before", data)).ok());
    ASSERT_TRUE(negotiation.StartTimeline(path, true).ok());
    ASSERT_TRUE(RunOne(negotiation, SumOf("tensor \"a\"", data)).ok());
    ASSERT_TRUE(negotiation.StopTimeline().ok());
    ASSERT_TRUE(RunOne(negotiation, SumOf("after", data)).ok());
    const std::string text = *base::ReadFile(path);
    for (const char* const part :
         {"\"tensor \\\"a\\\"\"", "NEGOTIATE_ALLREDUCE", "QUEUE", "MEMCPY_IN_FUSION_BUFFER",
          "\"ALLREDUCE\"", "MEMCPY_OUT_FUSION_BUFFER", "CYCLE_START",
          "start_time_since_epoch_in_micros"}) {
      EXPECT_THAT(text, HasSubstr(part));
    }
    EXPECT_EQ(text.find("before"), std::string::npos);
    // Rank 0 records who announces what, which the other may do already.
    EXPECT_TRUE(negotiation.rank() == 0 || text.find("after") == std::string::npos);
    EXPECT_EQ(text.substr(text.size() - 3), "\n]\n");
    EXPECT_FALSE(negotiation.StartTimeline("/nowhere/at/all", false).ok());
  });
}

TEST(NegotiationTest, AutotuningTriesSettingsAndTellsWhatItKept) {
  const base::TemporaryDirectory folder;
  NegotiationOptions options;
  options.autotune = true;
  options.autotune_log = (folder.path() / "log.csv").string();
  options.tuner.window = absl::Milliseconds(2);
  options.tuner.windows = 1;
  std::atomic<bool> kept = false;
  OnRanks(
      2,
      [&](Negotiation& negotiation) {
        const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(60)));
        Floats done(1, 0);
        while (done[0] == 0 && !deadline.Expired()) {
          Floats data(100, 1);
          ASSERT_TRUE(RunOne(negotiation, SumOf("data", data)).ok());
          const auto log = base::ReadFile(options.autotune_log);
          const bool seen = log.ok() && log->find("kept") != std::string::npos;
          done[0] = negotiation.rank() == 0 && seen ? 1 : 0;
          ASSERT_TRUE(RunOne(negotiation, SumOf("done", done)).ok());
          if (seen) kept = true;
        }
      },
      options);
  EXPECT_TRUE(kept);
}

}  // namespace
}  // namespace tutti::comm
