#include "platform/service/logs/metric_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tutti::service {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Adds a point a step, each in a line of ten bytes, whose value is the step.
MetricSpans Ramp(int64_t points, size_t most) {
  MetricSpans spans(most);
  for (int64_t step = 0; step < points; ++step) {
    spans.Add({.value = static_cast<double>(step), .step = step, .time = 0.5 * step}, 10 * step);
  }
  return spans;
}

TEST(MetricSpansTest, ASpanHasWhatItsPointsHave) {
  MetricSpans spans(/*most=*/2);
  const double values[] = {1, 9, 3, kNan, -2};
  for (int64_t i = 0; i < 5; ++i)
    spans.Add({.value = values[i], .step = 5 - i, .time = 2.0 * i}, i);
  ASSERT_THAT(spans.spans(), SizeIs(2));
  EXPECT_EQ(spans.points_each(), 4);
  EXPECT_EQ(spans.count(), 5);
  const MetricSpan& span = spans.spans()[0];
  EXPECT_TRUE(std::isnan(span.last.value));
  EXPECT_EQ(span.last.step, 2);
  EXPECT_EQ(span.values.least, 1);
  EXPECT_EQ(span.values.greatest, 9);
  EXPECT_EQ(span.not_finite, 1);
  EXPECT_EQ(span.steps.least, 2);
  EXPECT_EQ(span.steps.greatest, 5);
  EXPECT_EQ(span.times.greatest, 6);
  EXPECT_EQ(spans.spans()[1].offset, 4u);
}

// Whatever the number of points, each span but the last is of so many consecutive ones.
TEST(MetricSpansTest, SpansAreOfOneLength) {
  for (const size_t most : {1u, 2u, 3u, 7u, 64u}) {
    for (const int64_t points : {1, 2, 3, 63, 64, 65, 1000}) {
      const MetricSpans spans = Ramp(points, most);
      ASSERT_LE(spans.spans().size(), most);
      const int64_t each = spans.points_each();
      ASSERT_EQ(spans.spans().size(), (points + each - 1) / each);
      for (size_t i = 0; i < spans.spans().size(); ++i) {
        const int64_t first = static_cast<int64_t>(i) * each;
        EXPECT_EQ(spans.spans()[i].values.least, first);
        EXPECT_EQ(spans.spans()[i].offset, 10u * first);
        EXPECT_EQ(spans.spans()[i].last.step, std::min(first + each, points) - 1);
      }
    }
  }
}

TEST(MetricSpansTest, ARangeNeedsWhatOverlapsItAndANeighbourOnEachSide) {
  const MetricSpans spans = Ramp(64, 16);  // of four points each
  const auto found = spans.Find({.from = 9, .to = 16});
  EXPECT_EQ(found.overlapping, 3u);
  EXPECT_THAT(found.numbers, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(spans.Find({.by_time = true, .from = 30.6}).numbers, ElementsAre(14, 15));
  EXPECT_THAT(spans.Find({.from = 7.2, .to = 7.8}).numbers, ElementsAre(1, 2)) << "between two";
  EXPECT_THAT(spans.Find({.from = 64}).numbers, IsEmpty());
  const MetricSpans chosen = spans.Chosen(found.numbers, /*most=*/3);
  EXPECT_THAT(chosen.spans(), SizeIs(3));
  EXPECT_EQ(chosen.points_each(), 8);
  EXPECT_EQ(chosen.count(), 20);
}

TEST(MetricSpansTest, StepsThatCameAgainAreFoundTwice) {
  MetricSpans spans(/*most=*/100);
  for (const int64_t step : {0, 1, 2, 3, 4, 2, 3, 4, 5, 6}) spans.Add({.step = step}, 0);
  EXPECT_THAT(spans.Find({.from = 3, .to = 3}).numbers, ElementsAre(2, 3, 4, 5, 6, 7));
}

TEST(MetricSpansTest, WithoutStepsAPointsNumberIsItsStep) {
  MetricSpans spans(/*most=*/8);
  for (int i = 0; i < 16; ++i) spans.Add({.value = 1}, 0);
  EXPECT_THAT(spans.Find({.from = 6, .to = 7}).numbers, ElementsAre(2, 3, 4));
  EXPECT_THAT(spans.Find({.by_time = true, .from = 0}).numbers, IsEmpty());
}

TEST(PointsInRangeTest, KeepsThoseThatALineThroughTheRangeNeeds) {
  const auto kept = [](const std::vector<int64_t>& steps, double from, double to) {
    PointsInRange points({.from = from, .to = to}, /*first=*/100, /*tells_steps=*/true, 64);
    for (const int64_t step : steps) points.Add({.step = step}, 0);
    std::vector<int64_t> numbers = {points.first()};
    for (const MetricSpan& span : points.spans().spans()) numbers.push_back(*span.last.step);
    return numbers;
  };
  EXPECT_THAT(kept({1, 2, 3, 4, 5, 6}, 3, 4), ElementsAre(101, 2, 3, 4, 5));
  EXPECT_THAT(kept({3, 4}, 3, 4), ElementsAre(100, 3, 4));
  EXPECT_THAT(kept({1, 5, 9}, 6, 7), ElementsAre(101, 5, 9)) << "between two";
  EXPECT_THAT(kept({1, 2, 3, 2, 3}, 3, 4), ElementsAre(101, 2, 3, 2, 3)) << "begun again";
  EXPECT_THAT(kept({5, 1}, 2, 3), ElementsAre(0)) << "back to an earlier step";
}

TEST(PointsInRangeTest, ManyPointsBecomeSpans) {
  PointsInRange points({.from = 10, .to = 89}, /*first=*/0, /*tells_steps=*/false, /*most=*/16);
  for (int i = 0; i < 100; ++i) points.Add({.value = i == 50 ? 7.0 : 1.0}, 0);
  EXPECT_EQ(points.first(), 9);
  EXPECT_EQ(points.spans().count(), 82);
  EXPECT_EQ(points.spans().points_each(), 8);
  EXPECT_EQ(points.spans().spans()[5].values.greatest, 7);  // of the points 49 to 56
}

}  // namespace
}  // namespace tutti::service
