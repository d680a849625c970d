// Every collective, of every size class, when one rank has left or does not come: all others name
// it, and the group stays ended.
// Covers: group/group.cc, collective/reduce_scatter.cc, collective/latency_optimal.cc.
#include <gtest/gtest.h>

#include <future>

#include "base/test_patience.h"
#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/reference_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

constexpr int kAbsent = 1;
constexpr size_t kSmall = 64, kLarge = 600000;  // floats in all

// One collective over `count` floats per group.
using RankCall = std::function<absl::Status(Communicator&, size_t count, base::Deadline)>;
struct Named {
  const char* name;
  RankCall call;
};

std::vector<size_t> Parts(const Communicator& group, size_t all) {
  return std::vector<size_t>(static_cast<size_t>(group.size()),
                             all / static_cast<size_t>(group.size()));
}

const Named kCollectives[] = {
    {"AllReduce",
     [](Communicator& group, size_t count, base::Deadline deadline) {
       ByteVector data(4 * count);
       return group.AllReduce(data.data(), count, DataType::kFloat32, ReduceOp::kSum, deadline);
     }},
    {"Adasum",
     [](Communicator& group, size_t count, base::Deadline deadline) {
       ByteVector data(4 * count);
       return group.AllReduce(data.data(), count, DataType::kFloat32, ReduceOp::kAdasum, deadline);
     }},
    {"ReduceScatter",
     [](Communicator& group, size_t count, base::Deadline deadline) {
       const auto parts = Parts(group, count);
       ByteVector input(4 * count), output(4 * parts[0]);
       return group.ReduceScatter(input.data(), parts, output.data(), DataType::kFloat32,
                                  ReduceOp::kMax, deadline);
     }},
    {"Broadcast",
     [](Communicator& group, size_t count, base::Deadline deadline) {
       ByteVector data(4 * count);
       return group.Broadcast(data.data(), data.size(), kAbsent, deadline);
     }},
    {"AllGather",
     [](Communicator& group, size_t count, base::Deadline deadline) {
       const auto parts = Parts(group, 4 * count);
       ByteVector input(parts[0]), output(4 * count);
       return group.AllGather(input.data(), parts[0], output.data(), deadline);
     }},
    {"AllToAll",
     [](Communicator& group, size_t count, base::Deadline deadline) {
       const auto parts = Parts(group, 4 * count);
       ByteVector input(4 * count), output(4 * count);
       return group.AllToAllV(input.data(), parts, output.data(), parts, deadline);
     }},
    {"Barrier",
     [](Communicator& group, size_t, base::Deadline deadline) { return group.Barrier(deadline); }}};

class AbsentRankTest : public testing::TestWithParam<std::tuple<Transport, int>> {
 protected:
  // Runs `body` on all ranks but the absent one, for which `absent` runs before.
  void Run(const std::function<void(std::unique_ptr<Communicator>)>& absent,
           const std::function<void(Communicator&)>& body) {
    const auto [transport, size] = GetParam();
    auto options = OptionsFor(size, transport);
    for (GroupOptions& one : options) one.peer_timeout = base::PatientTimeout(absl::Seconds(2));
    std::promise<void> done;
    const auto over = done.get_future().share();
    std::atomic<int> left = size - 1;
    OnEveryRank(options, [&](int rank, absl::StatusOr<std::unique_ptr<Communicator>> group) {
      ASSERT_TRUE(group.ok()) << group.status();
      if (rank == kAbsent) {
        absent(*std::move(group));
        return;
      }
      body(**group);
      if (--left == 0) done.set_value();
      over.wait();  // leaving before all know would be a reason of its own
    });
  }
};

TEST_P(AbsentRankTest, ThatHasLeftIsNamedByEveryCollective) {
  for (const Named& collective : kCollectives) {
    for (const size_t count : {kSmall, kLarge}) {
      Run([](std::unique_ptr<Communicator> group) { group.reset(); },
          [&](Communicator& group) {
            const absl::Status status = collective.call(group, count, Soon());
            EXPECT_EQ(LostRank(status), kAbsent) << collective.name << ": " << status;
            EXPECT_TRUE(absl::IsUnavailable(status)) << collective.name << ": " << status;
            EXPECT_EQ(group.Barrier(Soon()), status) << collective.name;
          });
    }
  }
}

TEST_P(AbsentRankTest, ThatDoesNotComeIsNamedAtTheDeadlineByEveryCollective) {
  for (const Named& collective : kCollectives) {
    std::promise<void> named;
    const auto over = named.get_future().share();
    std::atomic<int> left = std::get<1>(GetParam()) - 1;
    Run([&](std::unique_ptr<Communicator>) { over.wait(); },
        [&](Communicator& group) {
          const auto deadline = base::Deadline::After(absl::Milliseconds(100));
          const absl::Status status = collective.call(group, kSmall, deadline);
          EXPECT_EQ(LostRank(status), kAbsent) << collective.name << ": " << status;
          EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << collective.name << ": " << status;
          if (--left == 0) named.set_value();
        });
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, AbsentRankTest,
                         testing::Combine(testing::Values(Transport::kTcp,
                                                          Transport::kSharedMemory),
                                          testing::Values(2, 3, 8)),
                         [](const auto& info) {
                           return std::to_string(std::get<1>(info.param)) + "Ranks" +
                                  (std::get<0>(info.param) == Transport::kTcp ? "Tcp" : "Shm");
                         });

}  // namespace
}  // namespace tutti::comm
