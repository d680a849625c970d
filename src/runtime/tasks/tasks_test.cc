// Covers: average_precision.cc, detection.cc, segmentation.cc, box_arithmetic.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/models/networks/single_shot_detector.h"
#include "runtime/tasks/average_precision.h"
#include "runtime/tasks/box_arithmetic.h"
#include "runtime/tasks/classification.h"
#include "runtime/tasks/detection.h"
#include "runtime/tasks/segmentation.h"

namespace tutti::tasks {
namespace {

using torch::Tensor;

TEST(Classification, AddsUpAuxiliaryLossesAndCountsHits) {
  const Tensor logits = torch::tensor({{2.0, 0.0}, {0.0, 1.0}, {3.0, 0.0}});
  const Tensor labels = torch::tensor({0, 0, 0}, torch::kInt64);
  const Classification task;
  const Loss plain = task.LossOf({logits}, labels), both = task.LossOf({logits, logits}, labels);
  EXPECT_NEAR(both.sum.item<double>(), 1.4 * plain.sum.item<double>(), 1e-5);
  EXPECT_EQ(plain.correct.item<int64_t>(), 2);
  EXPECT_EQ(task.Units(labels), 3);
  EXPECT_GT(Classification(0.1).LossOf({logits}, labels).sum.item<double>(),
            plain.sum.item<double>());
}

TEST(Classification, OfMixedImagesIsTheSharesMeanOfTheLosses) {
  const Tensor logits = torch::tensor({{2.0, 0.0, 1.0}, {0.0, 1.0, 0.0}});
  const Tensor own = torch::tensor({0, 1}, torch::kInt64), other = own.flip(0);
  const Tensor shares = 0.7 * torch::one_hot(own, 3) + 0.3 * torch::one_hot(other, 3);
  for (const double smoothing : {0.0, 0.1}) {
    const Classification task(smoothing);
    const Loss mixed = task.LossOf({logits}, shares.to(torch::kFloat32));
    EXPECT_NEAR(mixed.sum.item<double>(),
                0.7 * task.LossOf({logits}, own).sum.item<double>() +
                    0.3 * task.LossOf({logits}, other).sum.item<double>(),
                1e-5);
    EXPECT_EQ(mixed.correct.item<int64_t>(), 2);
    EXPECT_EQ(task.Units(shares), 2);
  }
}

TEST(Segmentation, LeavesOutIgnoredPixels) {
  const Segmentation task(3);
  const Tensor masks = torch::tensor({0, 1, 2, 255}, torch::kInt64).view({1, 2, 2});
  Tensor logits = torch::zeros({1, 3, 2, 2});
  logits.index_put_({0, 2}, torch::tensor({0.0, 0.0, 5.0, 5.0}).view({2, 2}));
  EXPECT_EQ(task.Units(masks), 3);
  const double loss = task.LossOf({logits}, masks).sum.item<double>();
  EXPECT_NEAR(loss, 2 * std::log(3.0) + std::log(1 + 2 * std::exp(-5.0)), 1e-5);
  EXPECT_NEAR(task.LossOf({logits, logits}, masks).sum.item<double>(), 1.5 * loss, 1e-5);
}

TEST(Segmentation, MeasuresIntersectionOverUnion) {
  const Segmentation task(4);  // of which the last is nowhere
  const auto measure = task.NewMeasure();
  const Tensor masks = torch::tensor({0, 0, 1, 2, 2, 255}, torch::kInt64).view({1, 2, 3});
  const Tensor said = torch::tensor({0, 1, 1, 2, 0, 0}, torch::kInt64).view({1, 2, 3});
  measure->Add(torch::one_hot(said, 4).permute({0, 3, 1, 2}).to(torch::kFloat32), masks);
  // Class 0: 1 of 3; class 1: 1 of 2; class 2: 1 of 2.
  EXPECT_NEAR(Value(measure->Metrics(), "miou"), (1.0 / 3 + 0.5 + 0.5) / 3, 1e-9);
  EXPECT_NEAR(Value(measure->Metrics(), "pixels"), 3.0 / 5, 1e-9);
}

TEST(Boxes, OverlapIsIntersectionOverUnion) {
  const Tensor a = torch::tensor({{0.0, 0.0, 0.5, 0.5}}),
               b = torch::tensor({{0.25, 0.0, 0.75, 0.5}, {0.5, 0.5, 1.0, 1.0}});
  EXPECT_TRUE(torch::allclose(Overlaps(a, b), torch::tensor({{1.0 / 3, 0.0}})));
}

TEST(Boxes, MovesLeadBack) {
  torch::manual_seed(1);
  const Tensor defaults = torch::rand({20, 4}) * 0.5 + 0.1;
  const Tensor from = torch::rand({20, 2}) * 0.5, corners = torch::cat({from, from + 0.3}, 1);
  EXPECT_TRUE(torch::allclose(Moved(defaults, Moves(defaults, corners)), corners, 1e-4, 1e-5));
}

TEST(Boxes, EveryObjectKeepsItsBestDefaultBox) {
  const Tensor defaults = torch::tensor({{0.25, 0.25, 0.5, 0.5}, {0.75, 0.75, 0.5, 0.5}});
  // The first object fits the first box; the second hardly overlaps any, the second box most.
  const Tensor objects = torch::tensor({{0.0, 0.0, 0.5, 0.45}, {0.9, 0.9, 1.0, 1.0}});
  const Tensor match = Match(defaults, objects, 0.5);
  EXPECT_TRUE(match.equal(torch::tensor({0, 1}, torch::kInt64)));
  EXPECT_TRUE(Match(defaults, objects.narrow(0, 0, 0), 0.5).eq(-1).all().item<bool>());
}

TEST(Boxes, LikelierOnesSuppressWhatTheyOverlap) {
  const Tensor boxes = torch::tensor(
      {{0.0, 0.0, 0.4, 0.4}, {0.05, 0.0, 0.45, 0.4}, {0.5, 0.5, 0.9, 0.9}, {0.1, 0.0, 0.5, 0.4}});
  EXPECT_TRUE(Distinct(boxes, 0.45).equal(torch::tensor({0, 2}, torch::kInt64)));
}

// Four default boxes side by side, an object of class 1 in the second.
class DetectionTest : public testing::Test {
 protected:
  const Tensor defaults_ = torch::tensor({{0.125, 0.5, 0.25, 1.0},
                                          {0.375, 0.5, 0.25, 1.0},
                                          {0.625, 0.5, 0.25, 1.0},
                                          {0.875, 0.5, 0.25, 1.0}});
  const Tensor annotations_ =
      torch::tensor({1.0, 0.25, 0.0, 0.5, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0}, torch::kFloat32)
          .view({1, 2, 5});
  const Detection task_{2, defaults_};
};

TEST_F(DetectionTest, TargetsAreClassesAndMovesOfMatchedBoxes) {
  const Tensor targets = task_.Targets(annotations_);
  EXPECT_TRUE(targets.select(2, 0).squeeze(0).equal(torch::tensor({0.0f, 2.0f, 0.0f, 0.0f})));
  EXPECT_TRUE(torch::allclose(targets[0][1].narrow(0, 1, 4), torch::zeros({4}), 0, 1e-5));
  EXPECT_EQ(task_.Units(targets), 1);
}

TEST_F(DetectionTest, ThreeHardestBackgroundBoxesCountForEachObject) {
  const Tensor targets = task_.Targets(annotations_);
  Tensor output = torch::zeros({1, 4, 7});
  output.index_put_({0, 1, 0}, 0.5);  // half a move wrong: 0.125 of smooth L1
  const double even = std::log(3.0);
  EXPECT_NEAR(task_.LossOf({output}, targets).sum.item<double>(), 0.125 + 4 * even, 1e-5);
  // Without an object nothing counts.
  EXPECT_EQ(task_.LossOf({output}, torch::zeros({1, 4, 5})).sum.item<double>(), 0);
}

TEST_F(DetectionTest, AnOutputThatSaysTheTruthIsMeasuredAsPerfect) {
  Tensor output = torch::zeros({1, 4, 7});
  output.index_put_({0, torch::indexing::Slice(), 4}, 20);  // background
  output.index_put_({0, 1, 4}, 0);
  output.index_put_({0, 1, 6}, 20);
  const auto measure = task_.NewMeasure();
  measure->Add(output, annotations_);
  EXPECT_NEAR(Value(measure->Metrics(), "map50"), 1, 1e-9);
  EXPECT_NEAR(Value(measure->Metrics(), "map"), 1, 1e-9);
}

TEST(AveragePrecision, IsTheAreaUnderTheEnvelopeOfPrecision) {
  // Hit, miss, hit of three objects: recalls 1/3 and 2/3 at precisions 1 and 2/3.
  const std::vector<double> rows = {0, 0.9, 1, 0, 0.8, 0, 0, 0.7, 1};
  const std::vector<double> objects = {3, 0};
  const double expected = (34 * 1.0 + 33 * 2.0 / 3) / 101;
  const MeanPrecision mean = MeanAveragePrecision(rows, objects);
  EXPECT_NEAR(mean.at_half, expected, 1e-9);
  EXPECT_NEAR(mean.mean, expected / 10, 1e-9) << "found at an overlap of 0.5 alone";
}

TEST(AveragePrecision, AnObjectIsFoundOnce) {
  const Tensor box = torch::tensor({{0.0f, 0.0f, 0.5f, 0.5f}});
  const Detections found{box.repeat({2, 1}), torch::zeros({2}, torch::kInt64),
                         torch::tensor({0.9f, 0.8f})};
  const Tensor objects = torch::tensor({{0.0f, 0.0f, 0.0f, 0.5f, 0.41f}});  // overlap 0.82
  std::vector<double> rows;
  AppendRows(found, objects, rows);
  EXPECT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[2], 0b1111111) << "0.5 to 0.8";
  EXPECT_EQ(rows[5], 0);
}

}  // namespace
}  // namespace tutti::tasks
