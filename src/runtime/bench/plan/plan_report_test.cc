#include "runtime/bench/plan/plan_report.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace tutti::bench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// 100 ms a step, and 10 MB of gradients that 1 Gbit/s takes about that long for.
NodeFacts ScalingFacts() {
  NodeFacts facts;
  facts.source = "recipe.yml";
  facts.model = "resnet20";
  facts.batch = 64;
  facts.parts = {.forward = 0.035, .backward = 0.065};
  facts.bucket_bytes = {2.5e6, 2.5e6, 2.5e6, 2.5e6};
  facts.learning_rate = 0.1;
  facts.warmup_epochs = 5;
  return facts;
}

PlanQuestion Asked(absl::string_view link, std::vector<int> nodes = {1, 2, 4}) {
  PlanQuestion question;
  question.nodes = std::move(nodes);
  question.link = *ReadLink(link);
  return question;
}

std::string AdviceAbout(absl::string_view what, const NodeFacts& facts,
                        const PlanQuestion& question) {
  for (const Advice& advice : AdviceOf(facts, question)) {
    if (advice.about == what) return advice.text;
  }
  return "";
}

TEST(AdviceOf, KeepsTheDocumentsOrder) {
  std::vector<std::string> order;
  for (const Advice& advice : AdviceOf(ScalingFacts(), Asked("1gbit")))
    order.push_back(advice.about);
  EXPECT_THAT(order, ElementsAre("up before out", "batch", "transport", "data"));
}

TEST(AdviceOf, TellsWhatAFasterNodeIsWorth) {
  PlanQuestion question = Asked("1gbit");
  question.price = 3;
  const double times = 4 * PredictRow(ScalingFacts(), question, 4).efficiency;
  ASSERT_GT(times, 1.5);
  ASSERT_LT(times, 3.5);
  EXPECT_THAT(
      AdviceAbout("up before out", ScalingFacts(), question),
      AllOf(HasSubstr(absl::StrFormat("4 nodes do %.1f times as many", times)),
            HasSubstr("up to 4 times one's price, 12 an hour"),
            HasSubstr(absl::StrFormat("a sweep: %.4g times", std::round(400 / times) / 100))));
}

TEST(AdviceOf, HasLittleToSayOfOneNode) {
  EXPECT_THAT(AdviceAbout("up before out", ScalingFacts(), Asked("1gbit", {1})),
              HasSubstr("--nodes 1..8 tells"));
}

TEST(AdviceOf, NamesTheLeastBatchThatHidesTheLinkAndItsLearningRate) {
  const PlanQuestion question = Asked("1gbit");
  NodeFacts twice = WithBatch(ScalingFacts(), 128), fourfold = WithBatch(ScalingFacts(), 256);
  ASSERT_LT(PredictRow(twice, question, 4).efficiency, 0.9);
  ASSERT_GE(PredictRow(fourfold, question, 4).efficiency, 0.9);
  EXPECT_THAT(AdviceAbout("batch", ScalingFacts(), question),
              AllOf(HasSubstr("batch-per-rank: 256, 1024 a step, brings 4 nodes to "),
                    HasSubstr("lr 0.1 becomes 1.6"), Not(HasSubstr("warmup-epochs"))));
  NodeFacts other = ScalingFacts();
  other.rate_rule = RateRule::kPerRank;
  other.warmup_epochs = 0;
  EXPECT_THAT(AdviceAbout("batch", other, question),
              AllOf(HasSubstr("lr 0.1 per rank becomes 0.4, with warmup-epochs: 5")));
  other.rate_rule = RateRule::kPerImage;
  EXPECT_THAT(AdviceAbout("batch", other, question), HasSubstr("scale-lr takes"));
  other.learning_rate = 0;
  other.rate_rule = RateRule::kAsItIs;
  EXPECT_THAT(AdviceAbout("batch", other, question), HasSubstr("learning rate by 16"));
  EXPECT_THAT(AdviceAbout("batch", ScalingFacts(), Asked("1gbit:500ms", {64})),
              HasSubstr("no batch up to 64"));
  EXPECT_THAT(AdviceAbout("batch", ScalingFacts(), Asked("100gbit", {200})),
              HasSubstr("optimizer: lars"));
}

TEST(AdviceOf, SaysWhatMemoryABatchTakes) {
  NodeFacts facts = ScalingFacts();
  EXPECT_THAT(AdviceAbout("batch", facts, Asked("1gbit")),
              HasSubstr("if a rank's memory holds it"));
  facts.memory = 1e9;
  facts.memory_of_an_image = 10e6;
  EXPECT_THAT(AdviceAbout("batch", facts, Asked("1gbit")),
              HasSubstr("if a rank has 2.92 GB of memory"));
}

TEST(AdviceOf, AdvisesOneNodeWhereMoreDoLess) {
  EXPECT_EQ(AdviceAbout("up before out", ScalingFacts(), Asked("1mbit")),
            "4 nodes do 0.0 times what one does alone: as it is, stay with one node.");
}

TEST(AdviceOf, AsksOfASharedBatchWhatOneNodeDoesWithAllOfIt) {
  NodeFacts facts = ScalingFacts();
  facts.batch_is_shared = true;
  facts.fixed = 0.5;
  EXPECT_THAT(AdviceAbout("batch", facts, Asked("100gbit")),
              HasSubstr("16 images a rank, 64 a step; batch-per-rank: 64, 256 a step"));
}

TEST(AdviceOf, NamesTheFirstLinkThatIsFastEnough) {
  const PlanQuestion slow = Asked("1gbit");
  ASSERT_LT(PredictRow(ScalingFacts(), Asked("10gbit"), 4).step.exposed, 0.01);
  EXPECT_THAT(AdviceAbout("transport", ScalingFacts(), slow),
              AllOf(HasSubstr("the 10 MB of gradients take"), HasSubstr("Over 10gbit they do"),
                    HasSubstr("compression: bf16")));
  NodeFacts compressed = ScalingFacts();
  compressed.wire_share = 0.5;
  EXPECT_THAT(AdviceAbout("transport", compressed, slow), Not(HasSubstr("compression")));
  EXPECT_THAT(AdviceAbout("transport", ScalingFacts(), Asked("100gbit")),
              HasSubstr("brings little"));
  EXPECT_THAT(AdviceAbout("transport", ScalingFacts(), Asked("1gbit", {1})),
              HasSubstr("no network"));
  NodeFacts fastest = ScalingFacts();
  fastest.bucket_bytes = {500e9};
  EXPECT_THAT(AdviceAbout("transport", fastest, Asked("ib-ndr")),
              HasSubstr("No link that is known by name is faster"));
}

TEST(AdviceOf, TellsWhatTheNodesReadOfAFileServer) {
  EXPECT_THAT(AdviceAbout("data", ScalingFacts(), Asked("1gbit")), HasSubstr("Not measured"));
  NodeFacts facts = ScalingFacts();
  facts.device = "cuda";
  facts.loader = {.images_per_second = 320, .bytes_per_image = 100e3, .workers = 3};
  PlanQuestion question = Asked("100gbit");
  EXPECT_THAT(
      AdviceAbout("data", facts, question),
      AllOf(HasSubstr("loader gives 320 images/s"), HasSubstr("Raise workers (3)"),
            HasSubstr("4 nodes read 128 MB/s, 1 % of what one file server gives over 100gbit")));
  question.data_link = *ReadLink("100mbit");
  EXPECT_THAT(AdviceAbout("data", facts, question), HasSubstr("Copy them to each node: mode"));
}

TEST(WarningsOf, NameTheFirstRowOfEachLimit) {
  const PlanQuestion question = Asked("100mbit");
  EXPECT_THAT(WarningsOf(ScalingFacts(), question, *PredictRows(ScalingFacts(), question)),
              ElementsAre(HasSubstr("from 2 nodes on the network is the limit: ")));
  NodeFacts facts = ScalingFacts();
  facts.waited = 0.3;
  facts.batch_is_shared = true;
  const PlanQuestion fast = Asked("100gbit");
  EXPECT_THAT(WarningsOf(facts, fast, *PredictRows(facts, fast)),
              ElementsAre(HasSubstr("took 30 %"), HasSubstr("one batch was measured")));
  facts = ScalingFacts();
  facts.cores = 0.5;
  EXPECT_THAT(WarningsOf(facts, fast, *PredictRows(facts, fast)),
              Contains(HasSubstr("nodes share a processor")));
}

TEST(PlanTable, HasARowANumberOfNodesAndTheAdvice) {
  PlanQuestion question = Asked("1gbit", {1, 2});
  const std::string plain =
      PlanTable(ScalingFacts(), question, *PredictRows(ScalingFacts(), question));
  EXPECT_THAT(plain,
              AllOf(HasSubstr("recipe.yml: resnet20, fp32 on cpu, 64 images a rank, one node "
                              "measured at 640 images/s; 10 MB of gradients; links of 1gbit"),
                    HasSubstr("| 1 | 1 | 64 | 640 | 100 % | 100.0 | 0.0 | compute |\n"),
                    HasSubstr("\n| 2 | 2 | 64 |"), HasSubstr("| network |\n"),
                    HasSubstr("\nwarning: from 2 nodes"), HasSubstr("\n4. data: "),
                    Not(HasSubstr("million"))));
  question.price = 3.6;
  EXPECT_THAT(
      PlanTable(ScalingFacts(), question, *PredictRows(ScalingFacts(), question)),
      AllOf(HasSubstr("limit | of a million images |\n"), HasSubstr("| compute | 1.56 |\n")));
}

TEST(PlanDocument, HoldsFactsRowsWarningsAndAdvice) {
  const PlanQuestion question = Asked("1gbit", {1, 2});
  const auto rows = *PredictRows(ScalingFacts(), question);
  const auto document = nlohmann::json::parse(PlanDocument(ScalingFacts(), question, rows));
  EXPECT_EQ(document["facts"]["batch_per_rank"], 64);
  EXPECT_EQ(document["rows"][1]["images_per_second"], rows[1].images_per_second());
  EXPECT_EQ(document["rows"][1]["limit"], "network");
  EXPECT_FALSE(document["rows"][1].contains("cost"));
  EXPECT_EQ(document["advice"].size(), 4u);
  EXPECT_EQ(document["warnings"].size(), 1u);
  EXPECT_EQ(document["link"]["name"], "1gbit");
}

}  // namespace
}  // namespace tutti::bench
