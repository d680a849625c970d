// ContractTest tests the contract of a communicator over sizes of the group, transports and ways to
// place its ranks.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/reference_test_support.h"

namespace tutti::comm {

// Size of the group, transport, ranks per node.
class ContractTest : public testing::TestWithParam<std::tuple<int, GroupOptions::Transport, int>> {
 protected:
  int size() const { return std::get<0>(GetParam()); }

  // Returns a part for every rank, about `count` elements in the mean, one of which has none.
  std::vector<size_t> UnevenParts(size_t count) const {
    std::vector<size_t> parts(size());
    for (int r = 0; r < size(); ++r)
      parts[r] = count * static_cast<size_t>((r + 1) % 3) + count % 7;
    if (size() > 2) parts[size() - 2] = 0;
    return parts;
  }
  static size_t Sum(std::span<const size_t> parts) {
    return std::accumulate(parts.begin(), parts.end(), size_t{0});
  }
  static ByteVector PartOf(const ByteVector& all, std::span<const size_t> parts, int rank,
                           size_t width) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(width * Sum(parts.first(rank)));
    return {begin, begin + static_cast<ptrdiff_t>(width * parts[rank])};
  }
  static ByteVector Gathered(std::span<const size_t> sizes) {
    ByteVector all;
    for (size_t rank = 0; rank < sizes.size(); ++rank) {
      const ByteVector part = Pattern(static_cast<int>(rank), sizes[rank]);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  // Runs `body` on every rank, expecting that all join.
  void Run(const std::function<void(Communicator&)>& body) {
    auto options = OptionsFor(size(), std::get<1>(GetParam()), std::get<2>(GetParam()));
    for (GroupOptions& one : options) one.check_calls = size() == 3;
    OnEveryRank(options, [&](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
      ASSERT_TRUE(group.ok()) << group.status();
      body(**group);
    });
  }
};

inline std::string CaseName(
    const testing::TestParamInfo<std::tuple<int, GroupOptions::Transport, int>>& info) {
  constexpr const char* kNames[] = {"Auto", "Tcp", "Shm"};
  const int per_node = std::get<2>(info.param);
  return std::to_string(std::get<0>(info.param)) + "Ranks" +
         kNames[static_cast<int>(std::get<1>(info.param))] +
         (per_node < 100 ? std::to_string(per_node) + "PerNode" : "");
}

inline auto OneNode() {
  return testing::Combine(
      testing::Values(1, 2, 3, 4, 5, 8),
      testing::Values(GroupOptions::Transport::kTcp, GroupOptions::Transport::kSharedMemory),
      testing::Values(1 << 16));
}
inline auto ManyNodes() {
  return testing::Combine(testing::Values(2, 5, 8), testing::Values(GroupOptions::Transport::kAuto),
                          testing::Values(1, 3));
}

}  // namespace tutti::comm
