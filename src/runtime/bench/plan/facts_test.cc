#include "runtime/bench/plan/facts.h"

#include <gmock/gmock.h>

namespace tutti::bench {
namespace {

using ::testing::HasSubstr;

// Steps of 100 ms, of which so many wait for data; the first is slower.
std::string Training(double data) {
  std::string lines =
      R"({"event":"start","model":"resnet20","parameters":272474,"world_size":2,"global_batch":128,)"
      R"("precision":"bf16","device":"cpu","train_images":50000})"
      "\n";
  for (const double more : {0.5, 0.0, 0.0, 0.001}) {
    const nlohmann::json line = {{"event", "step"},
                                 {"images_per_second", 128 / (0.1 + more)},
                                 {"data", data},
                                 {"forward", 0.03},
                                 {"backward", 0.06 - data + more},
                                 {"communication", 0.004},
                                 {"optimizer", 0.005},
                                 {"other", 0.001}};
    lines += line.dump() + "\nnot JSON\n";
  }
  return lines;
}

TEST(FactsOfMetrics, TakeTheMedianStepOfATraining) {
  const auto facts = FactsOfMetrics(Training(0.002), {});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->model, "resnet20");
  EXPECT_EQ(facts->precision, "bf16");
  EXPECT_EQ(facts->ranks, 2);
  EXPECT_EQ(facts->ranks_per_node, 2);
  EXPECT_EQ(facts->batch, 64);
  EXPECT_TRUE(facts->batch_is_shared);
  EXPECT_EQ(facts->train_images, 50000);
  EXPECT_DOUBLE_EQ(facts->gradient_bytes(), 4 * 272474);
  EXPECT_NEAR(facts->parts.Sum(), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(facts->parts.other, 0.003) << "a short wait stays in the step";
  EXPECT_EQ(facts->loader.images_per_second, 0);
}

TEST(FactsOfMetrics, ALongWaitForDataIsWhatTheLoaderCanDo) {
  const auto facts = FactsOfMetrics(Training(0.02), {});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_NEAR(facts->loader.images_per_second, 640, 1e-9);
  EXPECT_NEAR(facts->parts.Sum(), 0.08, 1e-12);
  PlanQuestion question;
  question.ranks_per_node = 2;
  const PlanRow row = PredictRow(*facts, question, 1);
  EXPECT_EQ(row.limit, PlanLimit::kLoader);
  EXPECT_NEAR(row.images_per_second(), 1280, 1e-9) << "as it was measured";
}

TEST(FactsOfMetrics, AScriptTellsItsRateAndTheUserTheRest) {
  const std::string lines =
      "{\"event\":\"metric\",\"name\":\"images_per_second\",\"value\":50}\n"
      "{\"step\":2,\"images_per_second\":400}\n{\"images_per_second\":400}\n";
  const auto facts = FactsOfMetrics(lines, {.batch = 40, .gradient_bytes = 102e6, .ranks = 1});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_NEAR(facts->parts.Sum(), 0.1, 1e-12);
  EXPECT_NEAR(facts->parts.backward, 0.2 / 3, 1e-12);
  EXPECT_FALSE(facts->batch_is_shared);
  EXPECT_DOUBLE_EQ(facts->gradient_bytes(), 102e6);
}

TEST(FactsOfMetrics, AnotherBatchThanTheJobsIsPlanned) {
  const auto facts = FactsOfMetrics(Training(0.002), {.batch = 128});
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->batch, 128);
  EXPECT_FALSE(facts->batch_is_shared);
  EXPECT_NEAR(facts->parts.forward, 0.06, 1e-12);
  EXPECT_NEAR(facts->parts.optimizer, 0.005, 1e-12);
}

TEST(FactsOfMetrics, SayWhatLacksAndHowToSayIt) {
  const std::string rate = "{\"images_per_second\":400}\n";
  EXPECT_THAT(FactsOfMetrics("{\"loss\":1}\n", {}).status().message(),
              HasSubstr("do not tell images_per_second: log it"));
  EXPECT_THAT(FactsOfMetrics(rate, {}).status().message(), HasSubstr("say --batch"));
  EXPECT_THAT(FactsOfMetrics(rate, {.batch = 32}).status().message(),
              HasSubstr("say --gradient-mb or --model"));
}

TEST(FactsOfPlan, AreThoseThatWerePrinted) {
  NodeFacts facts = *FactsOfMetrics(Training(0.02), {});
  facts.rate_rule = RateRule::kPerRank;
  facts.fixed = 0.25;
  const nlohmann::json json = AsJson(facts);
  const auto read = FactsOfPlan({{"facts", json}});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(nlohmann::json(AsJson(*read)), json);
  EXPECT_EQ(read->rate_rule, RateRule::kPerRank);
}

TEST(FactsOfPlan, NamesWhatIsMissing) {
  EXPECT_THAT(FactsOfPlan(nlohmann::json::object()).status().message(), HasSubstr("is no plan"));
  nlohmann::json json = AsJson(*FactsOfMetrics(Training(0), {}));
  json.erase("cores");
  EXPECT_THAT(FactsOfPlan({{"facts", json}}).status().message(), HasSubstr("\"cores\""));
  json["cores"] = 0;
  EXPECT_THAT(FactsOfPlan({{"facts", json}}).status().message(), HasSubstr("above 0"));
}

}  // namespace
}  // namespace tutti::bench
