#include "runtime/parallel/bucket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::parallel {
namespace {

using testing::ElementsAre;

TEST(PlanBuckets, RunsFromTheLastParameterToTheFirst) {
  EXPECT_THAT(PlanBuckets({4, 4, 4, 4}, 100, 100), ElementsAre(ElementsAre(3, 2, 1, 0)));
}

TEST(PlanBuckets, ClosesABucketAtItsCap) {
  EXPECT_THAT(PlanBuckets({4, 4, 4, 4, 4}, 4, 8),
              ElementsAre(ElementsAre(4), ElementsAre(3, 2), ElementsAre(1, 0)));
}

TEST(PlanBuckets, GivesALargeParameterABucketOfItsOwn) {
  EXPECT_THAT(PlanBuckets({1, 50, 1}, 8, 8),
              ElementsAre(ElementsAre(2), ElementsAre(1), ElementsAre(0)));
}

TEST(Bucket, ParametersAndGradientsAreViewsOfFlatMemory) {
  auto a = torch::randn({2, 3, 4, 4}).set_requires_grad(true);
  auto b = torch::randn({5}).set_requires_grad(true);
  const auto before = a.detach().clone();
  Bucket bucket({{"a", a}, {"b", b}}, 7);
  EXPECT_TRUE(torch::equal(a, before));
  EXPECT_TRUE(a.is_contiguous(torch::MemoryFormat::ChannelsLast));
  EXPECT_EQ(bucket.size(), 96 + 16);
  EXPECT_EQ(bucket.tail().numel(), 7);

  (a.sum() * 2 + b.sum() * 3).backward();
  EXPECT_EQ(bucket.gradients().sum().item<float>(), 2 * 96 + 3 * 5);
  EXPECT_EQ(a.grad().const_data_ptr(), bucket.gradients().const_data_ptr());
  {
    torch::NoGradGuard no_grad;
    bucket.values().fill_(9);
  }
  EXPECT_TRUE(b.eq(9).all().item<bool>());
}

TEST(Bucket, ViewHasTheShapeOfTheParameter) {
  auto a = torch::randn({3}).set_requires_grad(true);
  auto b = torch::randn({2, 3, 2, 2}).set_requires_grad(true);
  Bucket bucket({{"a", a}, {"b", b}}, 0);
  const auto momentum = bucket.values().clone();
  EXPECT_TRUE(torch::equal(Bucket::View(momentum, bucket.slots()[1]), b));
}

}  // namespace
}  // namespace tutti::parallel
