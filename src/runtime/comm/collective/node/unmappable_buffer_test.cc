// A rank that cannot map the others' new buffers: their data take the ways of plain memory.
// Covers: node_locate.cc.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "runtime/comm/forked_ranks.h"
#include "runtime/comm/group/group_test_support.h"

namespace tutti::comm {
namespace {

// What a rank reads of the sum when rank 1 has no file descriptors left to map buffers with.
std::string SumWithoutDescriptors(const GroupOptions& options, size_t count) {
  auto group = JoinGroup(options);
  if (!group.ok()) return group.status().ToString();
  const auto buffer = *(*group)->AllocateShared(count * sizeof(float));
  if (options.rank == 1) {
    const int lowest = ::dup(0);
    ::close(lowest);
    rlimit limit = {};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = static_cast<rlim_t>(lowest);
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  const std::span<float> data(static_cast<float*>(buffer->data()), count);
  for (const float scale : {1.0f, 10.0f}) {
    std::ranges::fill(data, scale * static_cast<float>(options.rank + 1));
    const absl::Status status =
        (*group)->AllReduce(data.data(), count, DataType::kFloat32, ReduceOp::kSum, Soon());
    if (!status.ok()) return status.ToString();
    const auto right = std::ranges::count(data, scale * 6);
    if (right != std::ssize(data)) return absl::StrCat(right, " sums are right");
  }
  return "right";
}

TEST(UnmappableBufferTest, TheSumIsRightWhereARankCannotMapTheOthersBuffers) {
  for (const size_t count : {1000, 4000, 8000, 100000}) {
    const auto options = OptionsFor(3, GroupOptions::Transport::kSharedMemory);
    ForkedRanks ranks;
    for (const GroupOptions& one : options) {
      ranks.Start([&] { return SumWithoutDescriptors(one, count); });
    }
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.Report(rank), "right") << count;
  }
}

}  // namespace
}  // namespace tutti::comm
