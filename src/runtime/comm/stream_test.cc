#include "runtime/comm/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

// Runs `body` on every rank with a stream over its group.
void OnEveryStream(int size, const std::function<void(Stream&)>& body) {
  OnEveryRank(OptionsFor(size, Transport::kAuto),
              [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                ASSERT_TRUE(group.ok()) << group.status();
                Stream stream(*std::move(group));
                body(stream);
              });
}

// What it runs never needs the other rank, which waits until it is done.
void OnRankZeroOfTwo(const std::function<void(Stream&)>& body) {
  std::promise<void> done;
  auto over = done.get_future().share();
  OnEveryStream(2, [&](Stream& stream) {
    if (stream.rank() == 1) return over.wait();
    body(stream);
    done.set_value();
  });
}

absl::Status Nothing(Communicator&) { return absl::OkStatus(); }

TEST(Stream, RunsInTheOrderOfIssue) {
  OnRankZeroOfTwo([](Stream& stream) {
    std::vector<int> order;
    Stream::Ticket last = 0;
    for (int i = 0; i < 100; ++i) {
      last = stream.Issue([&order, i](Communicator&) {
        order.push_back(i);
        return absl::OkStatus();
      });
    }
    ASSERT_TRUE(stream.Wait(last).ok());
    ASSERT_EQ(order.size(), 100u);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  });
}

TEST(Stream, TheFirstErrorEndsItButNotWhatWasDoneBefore) {
  OnRankZeroOfTwo([](Stream& stream) {
    bool ran_after = false;
    const Stream::Ticket before = stream.Issue(Nothing);
    stream.Issue([](Communicator&) { return absl::UnavailableError("rank 1 left"); });
    const Stream::Ticket after = stream.Issue([&](Communicator&) {
      ran_after = true;
      return absl::OkStatus();
    });
    EXPECT_EQ(stream.Wait(after), absl::UnavailableError("rank 1 left"));
    EXPECT_TRUE(stream.Wait(before).ok());
    EXPECT_TRUE(stream.Done(after));
    EXPECT_EQ(stream.Run(Nothing), absl::UnavailableError("rank 1 left"));
    EXPECT_EQ(stream.status(), absl::UnavailableError("rank 1 left"));
    EXPECT_FALSE(ran_after);
  });
}

// Rank 1 lives and is stuck. Who gave up before the collective would have it write into memory that
// is gone, and would not hear which rank was late.
TEST(Stream, WaitLastsUntilTheCollectiveHasConcludedAndHasItsError) {
  OnRankZeroOfTwo([](Stream& stream) {
    const auto deadline = base::Deadline::After(absl::Milliseconds(200));
    std::vector<float> data(1000, 1.0f);
    std::atomic<bool> running = true;
    const Stream::Ticket ticket = stream.Issue([&](Communicator& group) {
      absl::Status status =
          group.AllReduce(data.data(), data.size(), DataType::kFloat32, ReduceOp::kSum, deadline);
      running = false;
      return status;
    });
    const absl::Status status = stream.Wait(ticket);
    EXPECT_FALSE(running);
    EXPECT_TRUE(stream.Done(ticket));
    EXPECT_EQ(LostRank(status), 1) << status;
  });
}

// Rank 1 comes late, but in time: only then is the sum written, and AddressSanitizer (tools/asan)
// sees whether the memory of a waiter that had given up is gone by then.
TEST(Stream, WaitOutlastsWhatALateRankStillHasWritten) {
  std::promise<void> done;
  const auto returned = done.get_future().share();
  OnEveryStream(2, [&](Stream& stream) {
    if (stream.rank() == 1) {
      EXPECT_EQ(returned.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
    }
    std::vector<float> data(100'000, 1.0f);
    const Stream::Ticket ticket = stream.Issue([&data](Communicator& group) {
      return group.AllReduce(data.data(), data.size(), DataType::kFloat32, ReduceOp::kSum, Soon());
    });
    const absl::Status status = stream.Wait(ticket);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_TRUE(stream.Done(ticket));
    EXPECT_EQ(data, std::vector<float>(data.size(), 2.0f));
    std::vector<float>().swap(data);
    if (stream.rank() == 0) done.set_value();
  });
}

TEST(Stream, DoneDoesNotWait) {
  OnRankZeroOfTwo([](Stream& stream) {
    std::promise<void> go;
    const Stream::Ticket ticket = stream.Issue([&](Communicator&) {
      go.get_future().wait();
      return absl::OkStatus();
    });
    EXPECT_FALSE(stream.Done(ticket));
    go.set_value();
    EXPECT_TRUE(stream.Wait(ticket).ok());
    EXPECT_TRUE(stream.Done(ticket));
  });
}

TEST(Stream, DestructionEndsWithMuchStillQueued) {
  OnEveryRank(OptionsFor(2, Transport::kAuto), [](int, auto group) {
    ASSERT_TRUE(group.ok()) << group.status();
    std::promise<void> begun, go;
    auto stream = std::make_unique<Stream>(*std::move(group));
    stream->Issue([&](Communicator&) {
      begun.set_value();
      go.get_future().wait();
      return absl::OkStatus();
    });
    for (int i = 0; i < 1000; ++i) stream->Issue(Nothing);
    begun.get_future().wait();
    std::thread release([&] { go.set_value(); });
    stream.reset();
    release.join();
  });
}

TEST(Stream, CollectivesOverlapTheCallersWork) {
  OnEveryStream(3, [](Stream& stream) {
    std::vector<std::vector<float>> data(20, std::vector<float>(30011, 1.0f));
    std::vector<Stream::Ticket> tickets;
    for (auto& one : data) {
      tickets.push_back(stream.Issue([&one](Communicator& group) {
        return group.AllReduce(one.data(), one.size(), DataType::kFloat32, ReduceOp::kSum, Soon());
      }));
    }
    for (const Stream::Ticket ticket : tickets) ASSERT_TRUE(stream.Wait(ticket).ok());
    for (const auto& one : data) ASSERT_EQ(one, std::vector<float>(30011, 3.0f));
  });
}

TEST(Stream, AGroupOfOneRunsAtOnceInIssue) {
  OnEveryStream(1, [](Stream& stream) {
    const auto caller = std::this_thread::get_id();
    std::thread::id runner;
    const Stream::Ticket ticket = stream.Issue([&](Communicator& group) {
      runner = std::this_thread::get_id();
      float in = 3, out = 0;
      const absl::Status status = group.AllGather(&in, 4, &out, Soon());
      EXPECT_EQ(out, 3);
      return status;
    });
    EXPECT_TRUE(stream.Done(ticket));
    EXPECT_EQ(runner, caller);
  });
}

// Each pair of ranks, and all of them, at once and in an order that differs between the streams.
TEST(Stream, StreamsOverTwoGroupsRunAtTheSameTime) {
  OnEveryRank(OptionsFor(4, Transport::kAuto, 2), [](int rank, auto joined) {
    ASSERT_TRUE(joined.ok()) << joined.status();
    const int first = rank / 2 * 2;
    const int pair[] = {first, first + 1};
    auto part = (*joined)->NewGroup(pair, Soon());
    ASSERT_TRUE(part.ok()) << part.status();
    Stream whole(*std::move(joined)), half(*std::move(part));
    std::vector<int64_t> sums(50021, rank), pairs(50021, rank);
    const auto add = [](std::vector<int64_t>& data) {
      return [&data](Communicator& group) {
        return group.AllReduce(data.data(), data.size(), DataType::kInt64, ReduceOp::kMax, Soon());
      };
    };
    for (int i = 0; i < 20; ++i) {
      // Odd ranks issue the other way round: the streams do not wait for each other.
      if (rank % 2 == 0) whole.Issue(add(sums));
      half.Issue(add(pairs));
      if (rank % 2 == 1) whole.Issue(add(sums));
    }
    ASSERT_TRUE(half.Run(Nothing).ok());
    ASSERT_TRUE(whole.Run(Nothing).ok());
    EXPECT_EQ(sums, std::vector<int64_t>(50021, 3));
    EXPECT_EQ(pairs, std::vector<int64_t>(50021, first + 1));
  });
}

}  // namespace
}  // namespace tutti::comm
