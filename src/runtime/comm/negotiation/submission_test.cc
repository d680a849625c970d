// What is submitted is checked where it is, before anybody is told of it.
// Covers: negotiation_engine.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/comm/group/group_test_support.h"
#include "runtime/comm/negotiation/negotiation.h"

namespace tutti::comm {
namespace {

using testing::HasSubstr;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

absl::Status StatusOfSplits(Negotiation& negotiation, std::vector<int64_t> splits) {
  static const float rows[2] = {};
  Submission submission;
  submission.request.kind = Kind::kAllToAll;
  submission.request.name = "exchange";
  submission.request.parts = {{DataType::kFloat32, {0}}};
  submission.rows = {2};
  submission.inputs = {rows};
  submission.splits = std::move(splits);
  return negotiation.Submit(std::move(submission)).status();
}

TEST(SubmissionTest, SplitsThatAreNotTheRowsAreRefusedAtTheirCaller) {
  OnEveryRank(OptionsFor(3, GroupOptions::Transport::kAuto),
              [](int, absl::StatusOr<std::unique_ptr<Communicator>> group) {
                ASSERT_TRUE(group.ok()) << group.status();
                const auto negotiation = Negotiation::Start(*std::move(group), {});
                for (const std::vector<int64_t>& splits : std::vector<std::vector<int64_t>>{
                         {1, 1},
                         {1, 0, 0},
                         {2, 1, -1},
                         {3, 0, 0},
                         {kMost, kMost, 4},  // 2, were it to wrap around
                         {1, 1, 0, 0}}) {
                  const absl::Status status = StatusOfSplits(*negotiation, splits);
                  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
                  EXPECT_THAT(status.message(), HasSubstr("tensor \"exchange\": "));
                }
              });
}

}  // namespace
}  // namespace tutti::comm
