#include "runtime/train/report/traced_communicator.h"

#include <gtest/gtest.h>

#include <array>

#include "base/test_patience.h"
#include "runtime/parallel/thread_group_fake.h"

namespace tutti::train {
namespace {

base::Deadline Soon() { return base::Deadline::After(base::Patient(absl::Seconds(30))); }

class TracedCommunicatorTest : public ::testing::Test {
 protected:
  // What each of two ranks' traces has, after `body`.
  template <typename Body>
  std::array<std::vector<TraceSpan>, 2> SpansOf(const Body& body) {
    std::array<std::vector<TraceSpan>, 2> spans;
    parallel::OnEveryRank(2, [&](int rank, std::unique_ptr<comm::Communicator> group) {
      const auto trace = std::make_shared<Trace>(100);
      const auto traced = Traced(std::move(group), trace);
      EXPECT_EQ(traced->rank(), rank);
      EXPECT_EQ(traced->size(), 2);
      body(*traced);
      spans[rank] = trace->Spans();
    });
    return spans;
  }
  static void ExpectOne(const std::vector<TraceSpan>& spans, SpanKind kind, double bytes) {
    ASSERT_EQ(spans.size(), 1u);
    EXPECT_EQ(spans[0].kind, static_cast<double>(kind));
    EXPECT_EQ(spans[0].detail, bytes);
    EXPECT_GE(spans[0].seconds, 0);
  }
};

TEST_F(TracedCommunicatorTest, PassesTheCallOnAndNotesItsBytes) {
  const auto spans = SpansOf([](comm::Communicator& group) {
    std::array<float, 3> data = {1, 2, 3};
    EXPECT_TRUE(group
                    .AllReduce(data.data(), data.size(), comm::DataType::kFloat32,
                               comm::ReduceOp::kSum, Soon())
                    .ok());
    EXPECT_EQ(data[2], 6);
  });
  for (const auto& of_rank : spans) ExpectOne(of_rank, SpanKind::kAllReduce, 12);
}

TEST_F(TracedCommunicatorTest, AGatherIsOfAllRanksBytes) {
  const auto spans = SpansOf([](comm::Communicator& group) {
    const int own = 10 + group.rank();
    std::array<int, 2> all{};
    EXPECT_TRUE(group.AllGather(&own, sizeof own, all.data(), Soon()).ok());
    EXPECT_EQ(all, (std::array<int, 2>{10, 11}));
  });
  for (const auto& of_rank : spans) ExpectOne(of_rank, SpanKind::kAllGather, 2 * sizeof(int));
}

TEST_F(TracedCommunicatorTest, CountsOfSeveralRanksAreAddedUp) {
  const auto spans = SpansOf([](comm::Communicator& group) {
    const std::array<float, 3> input = {1, 2, 3};
    const std::array<size_t, 2> counts = {1, 2};
    std::array<float, 2> output{};
    EXPECT_TRUE(group
                    .ReduceScatter(input.data(), counts, output.data(), comm::DataType::kFloat32,
                                   comm::ReduceOp::kSum, Soon())
                    .ok());
    EXPECT_EQ(output[0], group.rank() == 0 ? 2 : 4);
  });
  for (const auto& of_rank : spans) ExpectOne(of_rank, SpanKind::kReduceScatter, 12);
}

TEST_F(TracedCommunicatorTest, MessagesAndBarriersAreNotedToo) {
  const auto spans = SpansOf([](comm::Communicator& group) {
    int value = 7 * group.rank();
    EXPECT_TRUE((group.rank() == 1 ? group.Send(&value, sizeof value, 0, Soon())
                                   : group.Receive(&value, sizeof value, 1, Soon()))
                    .ok());
    EXPECT_EQ(value, 7);
    EXPECT_TRUE(group.Broadcast(&value, sizeof value, 0, Soon()).ok());
    EXPECT_TRUE(group.Barrier(Soon()).ok());
  });
  EXPECT_EQ(spans[0][0].kind, static_cast<double>(SpanKind::kReceive));
  EXPECT_EQ(spans[1][0].kind, static_cast<double>(SpanKind::kSend));
  for (const auto& of_rank : spans) {
    ASSERT_EQ(of_rank.size(), 3u);
    EXPECT_EQ(of_rank[0].detail, sizeof(int));
    EXPECT_EQ(of_rank[1].kind, static_cast<double>(SpanKind::kBroadcast));
    EXPECT_EQ(of_rank[2].kind, static_cast<double>(SpanKind::kBarrier));
    EXPECT_EQ(of_rank[2].detail, 0);
  }
}

TEST_F(TracedCommunicatorTest, GroupsOfItAreNotedButForWhatGoesBeforeTensors) {
  const auto spans = SpansOf([](comm::Communicator& group) {
    const std::array<int, 2> both = {0, 1};
    const auto pair = group.NewGroup(both, Soon());
    ASSERT_TRUE(pair.ok()) << pair.status();
    std::array<int, 256> values{};
    for (const size_t bytes : {sizeof(int), sizeof(values)}) {
      EXPECT_TRUE((group.rank() == 1 ? (*pair)->Send(values.data(), bytes, 0, Soon())
                                     : (*pair)->Receive(values.data(), bytes, 1, Soon()))
                      .ok());
    }
  });
  ExpectOne(spans[0], SpanKind::kReceive, 1024);
  ExpectOne(spans[1], SpanKind::kSend, 1024);
}

TEST_F(TracedCommunicatorTest, AnErrorIsTheCallersAndIsNoted) {
  const auto trace = std::make_shared<Trace>(100);
  auto group = parallel::MakeThreadGroup(
      1, {.on_all_reduce = [](int, size_t) { return absl::UnavailableError("lost rank 1"); }});
  const auto traced = Traced(std::move(group[0]), trace);
  float value = 1;
  const absl::Status status =
      traced->AllReduce(&value, 1, comm::DataType::kFloat32, comm::ReduceOp::kSum, Soon());
  EXPECT_EQ(status, absl::UnavailableError("lost rank 1"));
  ExpectOne(trace->Spans(), SpanKind::kAllReduce, 4);
}

}  // namespace
}  // namespace tutti::train
