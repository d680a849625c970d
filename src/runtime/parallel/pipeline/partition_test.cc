#include "runtime/parallel/pipeline/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::parallel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

MemoryPlan PlanOf(int64_t stages, int64_t micro_batches, double states = 2) {
  return {OneForwardOneBackward(stages, micro_batches), states};
}

std::vector<LayerCost> LayersOfSeconds(std::vector<double> forward) {
  std::vector<LayerCost> layers;
  for (const double seconds : forward) {
    layers.push_back({.name = absl::StrCat("layer", layers.size()), .forward = seconds});
  }
  return layers;
}

// As many layers as numbers, which keep so many MiB of a micro-batch and send none on.
std::vector<LayerCost> LayersThatKeep(std::vector<int64_t> mebibytes) {
  std::vector<LayerCost> layers = LayersOfSeconds(std::vector<double>(mebibytes.size(), 1));
  for (size_t i = 0; i < layers.size(); ++i) layers[i].kept_bytes = mebibytes[i] * kMiB;
  return layers;
}

// Costs in whole numbers, so that sums in any order are equal.
std::vector<LayerCost> RandomLayers(size_t count, std::mt19937& random) {
  const auto up_to = [&](int most) { return static_cast<int64_t>(random() % (most + 1)); };
  std::vector<LayerCost> layers;
  for (size_t i = 0; i < count; ++i) {
    layers.push_back({.name = absl::StrCat("layer", i),
                      .forward = static_cast<double>(up_to(5)),
                      .backward = static_cast<double>(up_to(9)),
                      .parameter_bytes = up_to(40),
                      .buffer_bytes = up_to(5),
                      .kept_bytes = up_to(30),
                      .output_bytes = up_to(10)});
  }
  return layers;
}

struct WorstOfCut {
  double seconds = 0;
  int64_t bytes = 0;
};

WorstOfCut WorstOf(std::span<const LayerCost> layers, const Cut& cut, const MemoryPlan& plan) {
  WorstOfCut worst;
  for (const StageCost& stage : StagesOf(layers, cut, plan)) {
    worst.seconds = std::max(worst.seconds, stage.seconds.forward + stage.seconds.backward);
    worst.bytes = std::max(worst.bytes, stage.bytes());
  }
  return worst;
}

// Calls `body` with each cut of so many layers into so many stages.
template <typename Body>
void ForEachCut(size_t layers, size_t stages, Cut begun, const Body& body) {
  if (begun.size() == stages) return body(begun);
  for (size_t next = begun.back() + 1; next < layers; ++next) {
    Cut longer = begun;
    longer.push_back(next);
    ForEachCut(layers, stages, std::move(longer), body);
  }
}

// By trying all cuts: the least of (seconds, bytes), and the least bytes alone.
struct BestOfAllCuts {
  std::optional<std::pair<double, int64_t>> balanced;
  std::optional<int64_t> smallest;
};

BestOfAllCuts TryAllCuts(std::span<const LayerCost> layers, const MemoryPlan& plan,
                         int64_t most_bytes) {
  BestOfAllCuts best;
  ForEachCut(layers.size(), plan.table.size(), {0}, [&](const Cut& cut) {
    const WorstOfCut worst = WorstOf(layers, cut, plan);
    const std::pair both(worst.seconds, worst.bytes);
    best.smallest = std::min(best.smallest.value_or(worst.bytes), worst.bytes);
    if (worst.bytes <= most_bytes) best.balanced = std::min(best.balanced.value_or(both), both);
  });
  return best;
}

TEST(StagesOf, AddsUpLayersAndKeepsWhatIsInFlight) {
  const std::vector<LayerCost> layers = {
      {"a", 1, 2, /*parameter_bytes=*/10, /*buffer_bytes=*/1, /*kept_bytes=*/100,
       /*output_bytes=*/7},
      {"b", 2, 3, 20, 2, 200, 11},
      {"c", 4, 5, 30, 3, 400, 13}};
  // Stage 0 has two micro-batches in flight, stage 1 has one, of which it also keeps what b sent.
  const auto stages = StagesOf(layers, {0, 2}, PlanOf(2, 4, 3));
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].seconds.forward, 3);
  EXPECT_EQ(stages[0].seconds.backward, 5);
  EXPECT_EQ(stages[0].state_bytes, 3 * 30 + 3);
  EXPECT_EQ(stages[0].activation_bytes, 2 * 300);
  EXPECT_EQ(stages[0].bytes(), 693);
  EXPECT_EQ(stages[1].seconds.forward, 4);
  EXPECT_EQ(stages[1].seconds.backward, 5);
  EXPECT_EQ(stages[1].state_bytes, 3 * 30 + 3);
  EXPECT_EQ(stages[1].activation_bytes, 400 + 11);
}

TEST(StagesOf, ThatWaitForNobodyKeepWhatWasSentOnOrCame) {
  const std::vector<LayerCost> layers = {{.name = "a", .kept_bytes = 100, .output_bytes = 7},
                                         {.name = "b", .kept_bytes = 200, .output_bytes = 11},
                                         {.name = "c", .kept_bytes = 400, .output_bytes = 13}};
  MemoryPlan plan = PlanOf(3, 1, 2);
  plan.kept_outputs = 2;
  const auto guessing = StagesOf(layers, {0, 1, 2}, plan);
  EXPECT_EQ(guessing[0].activation_bytes, 100 + 2 * 2 * 7);
  EXPECT_EQ(guessing[1].activation_bytes, 207 + 2 * 11);
  EXPECT_EQ(guessing[2].activation_bytes, 411);
  plan.kept_outputs = 0;
  plan.kept_inputs = 2;
  EXPECT_EQ(StagesOf(layers, {0, 1, 2}, plan)[1].activation_bytes, 207 + 2 * 7);
}

TEST(StagesOf, OfGPipeKeepsAllMicroBatchesOnEachStage) {
  const auto stages = StagesOf(LayersThatKeep({1, 2}), {0, 1}, {GPipe(2, 5), 2});
  EXPECT_EQ(stages[0].activation_bytes, 5 * kMiB);
  EXPECT_EQ(stages[1].activation_bytes, 10 * kMiB);
}

TEST(BalancedCut, MakesTheSlowestStageAsFastAsCanBe) {
  EXPECT_THAT(BalancedCut(LayersOfSeconds({4, 1, 1, 1, 1}), PlanOf(2, 4), kUnlimited),
              ElementsAre(0, 1));
  EXPECT_THAT(BalancedCut(LayersOfSeconds({1, 1, 5, 1, 1}), PlanOf(3, 4), kUnlimited),
              ElementsAre(0, 2, 3));
  EXPECT_THAT(BalancedCut(LayersOfSeconds({3}), PlanOf(1, 4), kUnlimited), ElementsAre(0));
}

TEST(BalancedCut, IsEmptyWhereThereIsNone) {
  EXPECT_THAT(BalancedCut(LayersOfSeconds({1, 1}), PlanOf(3, 4), kUnlimited), IsEmpty());
  EXPECT_THAT(BalancedCut(LayersOfSeconds({1, 1}), {}, kUnlimited), IsEmpty());
  EXPECT_THAT(BalancedCut(LayersThatKeep({8, 1}), PlanOf(2, 1), 7 * kMiB), IsEmpty());
}

TEST(BalancedCut, GivesUpBalanceForALimitOfMemory) {
  std::vector<LayerCost> layers = LayersThatKeep({4, 4, 1, 1});
  layers[3].forward = 3;
  EXPECT_THAT(BalancedCut(layers, PlanOf(2, 8), kUnlimited), ElementsAre(0, 3));
  EXPECT_THAT(BalancedCut(layers, PlanOf(2, 8), 17 * kMiB), ElementsAre(0, 2));
  EXPECT_THAT(BalancedCut(layers, PlanOf(2, 8), 8 * kMiB), ElementsAre(0, 1));
}

TEST(BalancedCut, IsTheBestOfAllCuts) {
  std::mt19937 random(20261);
  int without = 0, limited = 0;
  for (int round = 0; round < 400; ++round) {
    const size_t count = 2 + random() % 8;
    const auto stages = static_cast<int64_t>(1 + random() % 4);
    const auto layers = RandomLayers(count, random);
    const MemoryPlan plan = PlanOf(stages, 1 + static_cast<int64_t>(random() % 6));
    for (const int64_t most : {kUnlimited, static_cast<int64_t>(80 + random() % 250)}) {
      SCOPED_TRACE(absl::StrCat("round ", round, ", ", most, " bytes"));
      const BestOfAllCuts expected = TryAllCuts(layers, plan, most);
      const Cut cut = BalancedCut(layers, plan, most);
      ASSERT_EQ(cut.empty(), !expected.balanced.has_value());
      if (cut.empty()) {
        ++without;
      } else {
        const WorstOfCut worst = WorstOf(layers, cut, plan);
        EXPECT_EQ(std::pair(worst.seconds, worst.bytes), *expected.balanced);
        limited += expected.balanced != TryAllCuts(layers, plan, kUnlimited).balanced ? 1 : 0;
      }
    }
  }
  EXPECT_GT(without, 20);  // the limits are neither too tight nor too wide to tell
  EXPECT_GT(limited, 20);
}

TEST(CheckStages, TellsHowManyLayersThereAre) {
  EXPECT_EQ(CheckStages("resnet20", 11, 11), absl::OkStatus());
  EXPECT_EQ(CheckStages("resnet20", 11, 12).message(),
            "resnet20 has 11 layers and cannot be cut into 12 stages");
  EXPECT_EQ(CheckStages("probe", 1, 2).message(),
            "probe has 1 layer and cannot be cut into 2 stages");
  EXPECT_EQ(CheckStages("resnet20", 11, 0).message(),
            "a pipeline has 1 stage or more, and was to have 0");
}

std::vector<LayerCost> NamedLayers(std::vector<std::string> names) {
  std::vector<LayerCost> layers;
  for (std::string& name : names) layers.push_back({.name = std::move(name)});
  return layers;
}

TEST(ReadCut, IsWrittenAsItIsRead) {
  const auto layers = NamedLayers({"conv1", "layer1.0", "layer2.0", "layer4.1", "fc"});
  for (const Cut& cut : {Cut{0, 2, 3}, Cut{0, 1, 4}, Cut{0}}) {
    const auto read = ReadCut(CutText(cut, layers), layers, static_cast<int64_t>(cut.size()));
    ASSERT_EQ(read.status(), absl::OkStatus());
    EXPECT_EQ(*read, cut);
  }
  EXPECT_EQ(CutText({0, 2, 3}, layers), "layer2.0,layer4.1");
  EXPECT_EQ(CutText({0}, layers), "");
  EXPECT_THAT(*ReadCut(" layer2.0, fc ", layers, 3), ElementsAre(0, 2, 4));
}

TEST(ReadCut, TellsWhatIsWrongWithTheNames) {
  const auto layers = NamedLayers({"conv1", "layer1.0", "layer2.0", "fc"});
  const auto error_of = [&](absl::string_view names, int64_t stages) {
    const absl::Status status = ReadCut(names, layers, stages).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(error_of("layer1.0", 3),
            "--cut names 1 layer, and 3 stages need 2: that with which each stage but the first "
            "begins");
  EXPECT_THAT(error_of("layer1.0", 1), HasSubstr("1 layer, and 1 stage needs 0"));
  EXPECT_THAT(error_of("", 2), HasSubstr("0 layers, and 2 stages need 1"));
  EXPECT_EQ(error_of("layer3.0", 2),
            "--cut: there is no layer \"layer3.0\" (did you mean \"layer1.0\"?); the layers are "
            "conv1, layer1.0, layer2.0, fc");
  EXPECT_EQ(error_of("conv1", 2),
            "--cut: the first stage begins with conv1; name the layers that later ones do");
  EXPECT_EQ(error_of("fc,layer1.0", 3),
            "--cut names layer1.0 after fc, which the model has in the other order");
  EXPECT_EQ(error_of("fc,fc", 3), "--cut names fc twice");
  EXPECT_EQ(error_of("fc", 5), "the model has 4 layers and cannot be cut into 5 stages");
}

std::string ErrorOfFit(std::span<const LayerCost> layers, const Cut& cut, const MemoryPlan& plan,
                       const Room& room) {
  const absl::Status status = CheckFits(layers, cut, plan, room);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  return std::string(status.message());
}

TEST(CheckFits, TakesWhatFitsToTheByte) {
  const auto layers = LayersThatKeep({3, 5});
  const Room room = {.free_bytes = {6 * kMiB, 5 * kMiB}, .micro_batches = 2};
  EXPECT_EQ(CheckFits(layers, {0, 1}, PlanOf(2, 2), room), absl::OkStatus());
  const Room less = {.free_bytes = {6 * kMiB - 1, 5 * kMiB}, .micro_batches = 2};
  EXPECT_THAT(ErrorOfFit(layers, {0, 1}, PlanOf(2, 2), less), HasSubstr("stage 0 of 2 (layer0)"));
}

TEST(CheckFits, ProposesAnotherCut) {
  auto layers = LayersThatKeep({500, 500, 1200, 900});
  layers[3].parameter_bytes = 512 * kMiB;
  const Room room = {.free_bytes = {4000 * kMiB, 2048 * kMiB}, .micro_batches = 1};
  EXPECT_EQ(ErrorOfFit(layers, {0, 2}, PlanOf(2, 1), room),
            "stage 1 of 2 (layer2 to layer3) needs 3.1 GiB, 1.0 GiB of state and 2.1 GiB of "
            "activations, and its rank may take 2.0 GiB; a cut that fits: --cut layer3");
}

TEST(CheckFits, NamesTheStageThatLacksMost) {
  const Room room = {.free_bytes = {8 * kMiB, 8 * kMiB, 8 * kMiB}};
  EXPECT_EQ(ErrorOfFit(LayersThatKeep({9, 30, 9}), {0, 1, 2}, PlanOf(3, 1), room),
            "stage 1 of 3 (layer1) needs 30 MiB, 0 MiB of state and 30 MiB of activations, and its "
            "rank may take 8 MiB; no other cut fits");
}

// Stage 0 keeps two micro-batches, and four times as many are a quarter as large.
TEST(CheckFits, ProposesMoreMicroBatches) {
  const auto layers = LayersThatKeep({40, 1});
  Room room = {
      .free_bytes = {20 * kMiB, 20 * kMiB}, .table_of = OneForwardOneBackward, .micro_batches = 4};
  EXPECT_THAT(ErrorOfFit(layers, {0, 1}, PlanOf(2, 4), room),
              HasSubstr("; no other cut fits, and with --accumulation 16 this one does"));
  room.most_micro_batches = 15;
  EXPECT_THAT(ErrorOfFit(layers, {0, 1}, PlanOf(2, 4), room),
              HasSubstr("; no other cut fits, nor do more micro-batches or more stages"));
  room.table_of = GPipe;
  room.most_micro_batches = kUnlimited;
  EXPECT_THAT(ErrorOfFit(layers, {0, 1}, {GPipe(2, 4), 2}, room),
              HasSubstr("; no other cut fits, nor do more micro-batches or more stages"));
}

TEST(CheckFits, ProposesMoreMicroBatchesWithAnotherCut) {
  // Of 8 micro-batches stage 0 would keep 2 * 15 MiB with this cut, and 2 * 10 MiB with the other.
  const Room room = {
      .free_bytes = {20 * kMiB, 20 * kMiB}, .table_of = OneForwardOneBackward, .micro_batches = 4};
  EXPECT_THAT(ErrorOfFit(LayersThatKeep({20, 10, 30}), {0, 2}, PlanOf(2, 4), room),
              HasSubstr("; no other cut fits, and with --accumulation 8 --cut layer1 does"));
}

TEST(CheckFits, ProposesMoreStages) {
  auto layers = LayersOfSeconds({1, 1, 1});
  for (LayerCost& layer : layers) layer.parameter_bytes = 10 * kMiB;
  const Room room = {
      .free_bytes = {30 * kMiB, 30 * kMiB}, .table_of = OneForwardOneBackward, .micro_batches = 4};
  EXPECT_EQ(ErrorOfFit(layers, {0, 1}, PlanOf(2, 4), room),
            "stage 1 of 2 (layer1 to layer2) needs 40 MiB, 40 MiB of state and 0 MiB of "
            "activations, and its rank may take 30 MiB; no other cut fits, and --parallel "
            "pipeline=3 --cut layer1,layer2 does");
}

}  // namespace
}  // namespace tutti::parallel
