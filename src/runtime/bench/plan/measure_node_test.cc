#include "runtime/bench/plan/measure_node.h"

#include <gtest/gtest.h>

namespace tutti::bench {
namespace {

const NodeMeasurement kShort = {.cores = 1, .seconds = absl::Milliseconds(1)};

train::Recipe Recipe() {
  train::Recipe recipe;
  recipe.model = "resnet20";
  recipe.batch = 8;
  recipe.precision = "fp32";
  recipe.device = "cpu";
  recipe.threads = 1;
  return recipe;
}

TEST(MeasureNode, TellsTheStepOfARecipe) {
  const auto facts = MeasureNode(Recipe(), kShort);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_GT(facts->parts.forward, 0);
  EXPECT_GT(facts->parts.backward, 0);
  EXPECT_GE(facts->gradient_bytes(), 4 * 269722);
  EXPECT_EQ(facts->batch, 8);
  EXPECT_TRUE(facts->batch_is_shared);
  EXPECT_EQ(facts->threads, 1);
  EXPECT_GT(facts->memory, 8 * facts->memory_of_an_image);
  EXPECT_EQ(facts->loader.images_per_second, 0) << "no data were named";
}

TEST(MeasureNode, TellsTheLoaderOfTheRecipesData) {
  train::Recipe recipe = Recipe();
  recipe.data = "synthetic:64x32x10";
  recipe.batch_per_rank = 4;
  recipe.compression = "int8";
  const auto facts = MeasureNode(recipe, kShort);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_GT(facts->loader.images_per_second, 0);
  EXPECT_GT(facts->loader.processor_seconds, 0);
  EXPECT_EQ(facts->train_images, 64);
  EXPECT_FALSE(facts->batch_is_shared);
  EXPECT_EQ(facts->wire_share, 0.25);
}

TEST(MeasureNode, SharesTheBatchAmongTheRanksOfTheNode) {
  NodeMeasurement measurement = kShort;
  measurement.ranks_per_node = 2;
  const auto facts = MeasureNode(Recipe(), measurement);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->batch, 4);
  EXPECT_EQ(facts->ranks_per_node, 2);
  EXPECT_EQ(facts->ranks, 1);
  EXPECT_GT(facts->memory_speed, 0);
}

TEST(MeasureNode, NamesAModelThatThereIsNot) {
  train::Recipe recipe = Recipe();
  recipe.model = "resnet2";
  EXPECT_EQ(MeasureNode(recipe, kShort).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GradientBytes("resnet2").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*GradientBytes("resnet50"), 4 * 25557032.0);
}

}  // namespace
}  // namespace tutti::bench
