// A rank that is lost in the middle of a sum of several segments, while a thread beside the
// collective calculates: all others name it, and nothing that thread uses goes before it ends.
// Covers: compute_thread.cc, encoded_sum.cc.
#include <gtest/gtest.h>

#include <memory>

#include "base/test_patience.h"
#include "runtime/comm/collective/compression/compression.h"
#include "runtime/comm/lost_in_work_test_support.h"

namespace tutti::comm {
namespace {

using Transport = GroupOptions::Transport;

constexpr size_t kSeveralSegments = 1'500'000;

// What is summed goes with every round, and so with the one that fails.
Round Sums(Communicator& group) {
  return [&group, reduce = std::make_shared<CompressedAllReduce>(Encoding::kInt8),
          feedback = std::make_shared<ErrorFeedback>()] {
    std::vector<float> values(kSeveralSegments, 1.0f);
    return reduce->Run(group, values, ReduceOp::kSum, feedback.get(), Soon());
  };
}

void ExpectThatEveryVictimIsNamed(int signal, double peer_timeout, double within_seconds) {
  for (const int per_node : {1, 2}) {
    auto options = OptionsFor(4, Transport::kAuto, per_node);
    for (GroupOptions& one : options)
      one.peer_timeout = base::PatientTimeout(absl::Seconds(peer_timeout));
    for (const int victim : {0, 3}) {
      ExpectThatAllNameTheVictim(
          options, Sums,
          {.victim = victim, .signal = signal, .after = absl::Milliseconds(10 + 13 * victim)},
          within_seconds);
    }
  }
}

TEST(CompressionFaultTest, ARankThatIsKilledInMidStepIsNamed) {
  ExpectThatEveryVictimIsNamed(SIGKILL, 4, 4);
}

TEST(CompressionFaultTest, ARankThatStopsInMidStepIsNamedWhenItIsSilentForTooLong) {
  ExpectThatEveryVictimIsNamed(SIGSTOP, 1.5, 3.5);
}

}  // namespace
}  // namespace tutti::comm
