// A rank that is killed or stopped at any moment of a collective over shared memory: all others get
// an error that names it, in time.
// Covers: segment.cc.
#include <gtest/gtest.h>

#include <vector>

#include "base/test_patience.h"
#include "runtime/comm/lost_in_work_test_support.h"

namespace tutti::comm {
namespace {

constexpr size_t kMany = 400000;  // values
constexpr double kNodePeerTimeout = 3;

std::vector<GroupOptions> Ranks(int size, int per_node, double peer_timeout = kNodePeerTimeout) {
  auto all = OptionsFor(size, GroupOptions::Transport::kAuto, per_node);
  for (GroupOptions& options : all) {
    options.peer_timeout = base::PatientTimeout(absl::Seconds(peer_timeout));
  }
  return all;
}

absl::Status Mean(Communicator& group, void* data, size_t count) {
  return group.AllReduce(data, count, DataType::kFloat32, ReduceOp::kMean, Soon());
}

// Returns a round over data in the rank's own memory, which goes through slots that the ranks
// share.
Round Staged(Communicator& group) {
  return [&group, data = std::vector<float>(kMany, 1)]() mutable {
    const absl::Status status = Mean(group, data.data(), kMany);
    return status.ok() ? group.Broadcast(data.data(), 4 * kMany, 0, Soon()) : status;
  };
}

// Returns a round over data in memory that the ranks reach directly.
Round Direct(Communicator& group) {
  std::shared_ptr<SharedBuffer> buffer = *group.AllocateShared(4 * kMany);
  return [&group, buffer] {
    const absl::Status status = Mean(group, buffer->data(), kMany);
    return status.ok() ? group.Broadcast(buffer->data(), 4 * kMany, 0, Soon()) : status;
  };
}

// Flat, staged, over shared buffers (old and new ones), between nodes.
Round OfEveryWay(Communicator& group) {
  return [&group, staged = Staged(group), direct = Direct(group)] {
    float little[2] = {1, 1};
    const auto fresh = *group.AllocateShared(kMany);
    for (const absl::Status& status :
         {Mean(group, little, 2), staged(), direct(), Mean(group, fresh->data(), kMany / 4),
          group.Barrier(Soon())}) {
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  };
}

TEST(NodeFaultTest, EverySurvivorOfATeamNamesTheRankThatWasKilled) {
  for (int run = 0; run < 12; ++run) {
    const int size = 2 + run % 3;
    ExpectThatAllNameTheVictim(Ranks(size, 1 << 16), OfEveryWay,
                               {.victim = run % size, .after = absl::Milliseconds(5 + 7 * run)},
                               kNodePeerTimeout);
  }
}

TEST(NodeFaultTest, EverySurvivorOfTwoLevelsNamesTheRankThatWasKilled) {
  for (int run = 0; run < 4; ++run) {
    ExpectThatAllNameTheVictim(Ranks(4, 2), OfEveryWay,
                               {.victim = run, .after = absl::Milliseconds(5 + 17 * run)},
                               kNodePeerTimeout);
  }
}

// Its memory is still mapped, its connections open: it is only silent.
void ExpectThatAStoppedRankIsNamed(const Work& work) {
  constexpr double kSilence = 1.5;
  for (int run = 0; run < 3; ++run) {
    ExpectThatAllNameTheVictim(
        Ranks(3, 1 << 16, kSilence), work,
        {.victim = run, .signal = SIGSTOP, .after = absl::Milliseconds(5 + 11 * run)},
        kSilence + 2);
  }
}

TEST(NodeFaultTest, ARankThatStopsInAStagedPhaseIsNamed) { ExpectThatAStoppedRankIsNamed(Staged); }

TEST(NodeFaultTest, ARankThatStopsInADirectPhaseIsNamed) { ExpectThatAStoppedRankIsNamed(Direct); }

}  // namespace
}  // namespace tutti::comm
