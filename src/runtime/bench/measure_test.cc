#include "runtime/bench/measure.h"

#include <gtest/gtest.h>

#include "base/test_patience.h"
#include "runtime/parallel/thread_group_fake.h"

namespace tutti::bench {
namespace {

TEST(MeasureStep, GivesPartsOfAStepAndTheBucketsOfTheModel) {
  parallel::OnEveryRank(2, [](int, std::unique_ptr<comm::Communicator> group) {
    const auto measured = MeasureStep({.batch = 2, .warm_up = 1, .steps = 3}, std::move(group));
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_GT(measured->parts.forward, 0);
    EXPECT_GT(measured->parts.backward, 0);
    double bytes = 0;
    for (const double bucket : measured->bucket_bytes) bytes += bucket;
    EXPECT_GE(bytes, 4 * 269722) << "ResNet-20 has that many parameters";
    EXPECT_LT(bytes, 4 * 280000);
  });
}

TEST(MeasureStep, NamesAModelThatThereIsNot) {
  parallel::OnEveryRank(1, [](int, std::unique_ptr<comm::Communicator> group) {
    const auto measured = MeasureStep({.model = "resnet2"}, std::move(group));
    EXPECT_EQ(measured.status().code(), absl::StatusCode::kNotFound);
  });
}

TEST(MeasureLink, TimesSizesFromAKibibyteTo16Mebibytes) {
  parallel::OnEveryRank(2, [](int, std::unique_ptr<comm::Communicator> group) {
    const auto times = MeasureLink(*group, base::Patient(absl::Seconds(60)));
    ASSERT_TRUE(times.ok()) << times.status();
    ASSERT_GT(times->size(), 4u);
    EXPECT_EQ(times->front().bytes, 1024);
    EXPECT_EQ(times->back().bytes, 16 << 20);
    for (const auto& time : *times) EXPECT_GT(time.seconds, 0) << time.bytes;
  });
  parallel::OnEveryRank(1, [](int, std::unique_ptr<comm::Communicator> group) {
    EXPECT_TRUE(MeasureLink(*group, base::Patient(absl::Seconds(60)))->empty());
  });
}

}  // namespace
}  // namespace tutti::bench
