#include "runtime/train/optimizer/parameter_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/models/model.h"
#include "runtime/parallel/bucket.h"
#include "runtime/train/optimizer/bucket_layers.h"

namespace tutti::train {
namespace {

using testing::ElementsAre;

parallel::Bucket NetworkBucket(const std::string& model) {
  const models::Model network = *models::MakeModel({model, 3}, std::nullopt);
  std::vector<parallel::NamedParameter> named;
  for (const auto& parameter : network->named_parameters()) {
    named.push_back({parameter.key(), parameter.value()});
  }
  return {named, 0};
}

// The names' slots that a range covers, and nothing else.
std::vector<std::string> NamesThatDecay(const parallel::Bucket& bucket,
                                        const std::vector<ParameterRange>& ranges) {
  std::vector<std::string> names;
  for (const auto& slot : bucket.slots()) {
    for (const ParameterRange& range : ranges) {
      if (range.begin <= slot.offset && slot.offset < range.end && range.decays) {
        names.push_back(slot.name);
      }
    }
  }
  return names;
}

TEST(ParameterRange, WeightsOfATransformerAreNeitherNormsBiasesTokenNorPositions) {
  const parallel::Bucket bucket = NetworkBucket("vit_ti_4");
  std::vector<std::string> weights;
  for (const auto& slot : bucket.slots()) {
    if (IsWeight(slot)) weights.push_back(slot.name);
  }
  ASSERT_EQ(weights.size(), 2u + 4 * 12);  // patches, head; four of each layer
  weights.erase(weights.begin() + 5, weights.end() - 1);
  const std::string first = "encoder.layers.encoder_layer_0.";
  EXPECT_THAT(weights, ElementsAre("conv_proj.weight", first + "self_attention.in_proj_weight",
                                   first + "self_attention.out_proj.weight", first + "mlp.0.weight",
                                   first + "mlp.3.weight", "heads.head.weight"));
}

TEST(ParameterRange, DecayAndLayersAreForWeightsAlone) {
  for (const char* model : {"vit_ti_4", "resnet20"}) {
    const parallel::Bucket bucket = NetworkBucket(model);
    std::vector<std::string> weights, all;
    for (const auto& slot : bucket.slots()) {
      all.push_back(slot.name);
      if (IsWeight(slot)) weights.push_back(slot.name);
    }
    EXPECT_EQ(NamesThatDecay(bucket, ParameterRangesOf(bucket, Decay::kWeights)), weights);
    EXPECT_EQ(NamesThatDecay(bucket, Layers(bucket).ranges()), weights);
    EXPECT_EQ(NamesThatDecay(bucket, ParameterRangesOf(bucket, Decay::kAll)), all);
  }
}

TEST(ParameterRange, TokensAndPositionsOfScriptsAreKnownByTimmsNames) {
  for (const char* name : {"cls_token", "pos_embed", "vit.cls_token", "encoder.pos_embedding"}) {
    EXPECT_FALSE(IsWeight({name, torch::zeros({1, 1, 4}), 0})) << name;
  }
  EXPECT_TRUE(IsWeight({"pos_embed.weight", torch::zeros({4, 4}), 0}));
  EXPECT_FALSE(IsWeight({"norm.weight", torch::zeros({4}), 0}));
}

}  // namespace
}  // namespace tutti::train
