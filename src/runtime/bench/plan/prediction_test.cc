#include "runtime/bench/plan/prediction.h"

#include <gmock/gmock.h>

#include "runtime/comm/collective/selection.h"

namespace tutti::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A step of 100 ms, 60 of them backward, and 8 MB of gradients in four buckets.
NodeFacts Facts() {
  NodeFacts facts;
  facts.model = "resnet20";
  facts.cores = 2;
  facts.threads = 2;
  facts.batch = 64;
  facts.parts = {.forward = 0.03, .backward = 0.06, .optimizer = 0.01};
  facts.bucket_bytes = {2e6, 2e6, 2e6, 2e6};
  facts.memory_speed = 10e9;
  return facts;
}

PlanQuestion Over(absl::string_view link) {
  PlanQuestion question;
  question.link = *ReadLink(link);
  return question;
}

TEST(ReadLink, TakesRatesLatenciesAndNames) {
  EXPECT_DOUBLE_EQ(ReadLink("100mbit")->bits, 1e8);
  EXPECT_NEAR(ReadLink("1gbit")->bytes_per_second(), 117.7e6, 0.1e6) << "what TCP gets of it";
  EXPECT_DOUBLE_EQ(ReadLink("2.5gbit:80us")->latency, 80e-6);
  EXPECT_GT(ReadLink("ib-edr")->bytes_per_second(), ReadLink("100gbit")->bytes_per_second());
  EXPECT_LT(ReadLink("ib-edr")->latency, ReadLink("100gbit")->latency);
}

TEST(ReadLink, NamesWhatIsNone) {
  for (const char* wrong : {"", "fast", "gbit", "-1gbit", "0mbit", "10", "infgbit", "ib-xdr"}) {
    EXPECT_THAT(ReadLink(wrong).status().message(), HasSubstr("write RATE[:LATENCY]")) << wrong;
  }
  EXPECT_THAT(ReadLink("1gbit:soon").status().message(), HasSubstr("\"soon\" is no latency"));
}

TEST(ReadNodes, TakesNumbersListsAndRanges) {
  EXPECT_THAT(*ReadNodes("4"), ElementsAre(4));
  EXPECT_THAT(*ReadNodes("4,1,4"), ElementsAre(1, 4));
  EXPECT_THAT(*ReadNodes("1..4"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*ReadNodes("3..40"), ElementsAre(3, 4, 8, 16, 32, 40));
}

TEST(ReadNodes, SaysWhatIsWrong) {
  EXPECT_THAT(ReadNodes("8..1").status().message(), HasSubstr("goes down: write 1..8"));
  for (const char* wrong : {"", "0", "two", "1..", "1..2..3", "1,,2", "100000"}) {
    EXPECT_FALSE(ReadNodes(wrong).ok()) << wrong;
  }
}

TEST(PredictRow, OneNodeDoesWhatWasMeasured) {
  const PlanRow row = PredictRow(Facts(), Over("1gbit"), 1);
  EXPECT_DOUBLE_EQ(row.images_per_second(), 640);
  EXPECT_DOUBLE_EQ(row.efficiency, 1);
  EXPECT_DOUBLE_EQ(row.step.exposed, 0);
  EXPECT_EQ(row.limit, PlanLimit::kCompute);
}

TEST(PredictRow, AnAllReduceTakesWhatTheCollectivesExpectOfIt) {
  const PlanQuestion question = Over("1gbit:50us");
  const comm::LinkCost cost = {50e-6, 1 / question.link.bytes_per_second(), comm::kUsualCost.gamma};
  EXPECT_DOUBLE_EQ(AllReduceSeconds(Facts(), question, 4, 2e6),
                   comm::PredictedSeconds(comm::AllReduceAlgorithm::kRing, 2'000'000, 4, cost));
  EXPECT_DOUBLE_EQ(AllReduceSeconds(Facts(), question, 4, 256),
                   comm::PredictedSeconds(comm::AllReduceAlgorithm::kDoubling, 256, 4, cost));
  EXPECT_DOUBLE_EQ(AllReduceSeconds(Facts(), question, 1, 2e6), 0);
}

TEST(PredictRow, ALargeAllReduceTakesTwiceItsBytesButForANodesOwnPart) {
  const PlanQuestion question = Over("1gbit:50us");
  const double rate = question.link.bytes_per_second();
  EXPECT_NEAR(AllReduceSeconds(Facts(), question, 4, 20e6), 2 * 0.75 * 20e6 / rate, 0.01);
}

TEST(FixedShare, IsWhatTheLineThroughTwoBatchesLeavesOfNone) {
  // 20 ms and 2.5 ms an image: 100 ms of 32 images, 40 ms of 8.
  const train::StepParts whole = {.forward = 0.03, .backward = 0.07};
  EXPECT_NEAR(FixedShare(whole, {.forward = 0.01, .backward = 0.03}, 0.25), 0.2, 1e-9);
  EXPECT_NEAR(FixedShare(whole, {.forward = 0.0075, .backward = 0.0175}, 0.25), 0, 1e-9);
  EXPECT_DOUBLE_EQ(FixedShare(whole, {.forward = 0.1, .backward = 0.1}, 0.25), 1);  // disturbed
}

TEST(PredictRow, ASlowLinkIsExposedAndIsTheLimit) {
  const PlanQuestion question = Over("100mbit");
  const PlanRow row = PredictRow(Facts(), question, 2);
  // The first bucket is there after 15 of the 60 ms of backward.
  const double link = 4 * AllReduceSeconds(Facts(), question, 2, 2e6);
  EXPECT_NEAR(row.step.exposed, link - 0.045, 1e-9);
  EXPECT_NEAR(row.seconds, 0.055 + link, 1e-9);
  EXPECT_DOUBLE_EQ(row.images_per_second(), 128 / row.seconds);
  EXPECT_NEAR(row.efficiency, 0.1 / row.seconds, 1e-9);
  EXPECT_EQ(row.limit, PlanLimit::kNetwork);
  EXPECT_EQ(PredictRow(Facts(), Over("100gbit"), 2).limit, PlanLimit::kCompute);
}

TEST(PredictRow, GpusAddUpAfterBackward) {
  NodeFacts facts = Facts();
  facts.device = "cuda";
  const PlanQuestion question = Over("10gbit");
  EXPECT_NEAR(PredictRow(facts, question, 2).step.exposed,
              4 * AllReduceSeconds(facts, question, 2, 2e6), 1e-9);
}

TEST(PredictRow, CompressedGradientsTakeLessOfTheLink) {
  NodeFacts facts = Facts();
  facts.wire_share = 0.25;
  const PlanQuestion question = Over("1gbit:0s");
  EXPECT_NEAR(AllReduceSeconds(facts, question, 2, 8e6),
              AllReduceSeconds(Facts(), question, 2, 2e6), 1e-9);
}

TEST(PredictRow, RanksOfANodeShareItsCoresAndAddUpInItsMemory) {
  PlanQuestion question = Over("1gbit");
  question.ranks_per_node = 2;
  const PlanRow row = PredictRow(Facts(), question, 1);
  EXPECT_DOUBLE_EQ(row.step.compute, 0.2) << "four threads on two cores";
  EXPECT_NEAR(row.step.communication, 5 * 8e6 / 10e9, 1e-12);
  NodeFacts together = Facts();  // as a job of two ranks has shown them
  together.ranks = together.ranks_per_node = 2;
  together.threads = 1;
  EXPECT_DOUBLE_EQ(PredictRow(together, question, 1).seconds, 0.1);
}

TEST(PredictRow, NodesThatShareACoreComputeMoreSlowly) {
  NodeFacts facts = Facts();
  facts.threads = 1;
  facts.cores = 0.5;
  EXPECT_DOUBLE_EQ(PredictRow(facts, Over("1gbit"), 1).step.compute, 0.2);
}

TEST(PredictRow, ABatchOverAllRanksIsSharedByMore) {
  NodeFacts facts = Facts();
  facts.batch_is_shared = true;
  facts.fixed = 0.2;
  const PlanRow row = PredictRow(facts, Over("100gbit"), 4);
  EXPECT_DOUBLE_EQ(row.batch, 16);
  EXPECT_DOUBLE_EQ(row.step.compute, 0.01 + 0.09 * (0.2 + 0.8 / 4));
  EXPECT_EQ(row.limit, PlanLimit::kBatch);
  facts.batch = 3;
  EXPECT_THAT(PredictRows(facts, Over("1gbit")).status().message(),
              HasSubstr("a batch of 3 over all is smaller than the 4 ranks"));
}

TEST(PredictRow, TheRanksOfTheMeasuredNodeShareItsBatchAlready) {
  NodeFacts facts = Facts();
  facts.batch_is_shared = true;
  facts.ranks_per_node = 2;
  PlanQuestion question = Over("100gbit");
  question.ranks_per_node = 2;
  EXPECT_DOUBLE_EQ(PredictRow(facts, question, 1).batch, 64);
  EXPECT_DOUBLE_EQ(PredictRow(facts, question, 4).batch, 16);
}

TEST(WithBatch, GoesBackAndForth) {
  NodeFacts facts = Facts();
  facts.fixed = 0.25;
  const NodeFacts larger = WithBatch(facts, 256);
  EXPECT_DOUBLE_EQ(larger.parts.backward, 0.06 * (0.25 + 0.75 * 4));
  EXPECT_NEAR(WithBatch(larger, 64).parts.backward, 0.06, 1e-12);
  EXPECT_DOUBLE_EQ(larger.parts.optimizer, 0.01);
  facts.memory = 1e9;
  facts.memory_of_an_image = 1e6;
  EXPECT_DOUBLE_EQ(WithBatch(facts, 164).memory, 1.1e9);
}

TEST(PredictRow, ALoaderThatIsSlowerThanTheStepIsTheLimit) {
  NodeFacts facts = Facts();
  facts.device = "cuda";
  facts.loader.images_per_second = 320;
  const PlanRow row = PredictRow(facts, Over("100gbit"), 2);
  EXPECT_EQ(row.limit, PlanLimit::kLoader);
  EXPECT_DOUBLE_EQ(row.seconds, 0.2);
  EXPECT_DOUBLE_EQ(row.images_per_second(), 640);
  facts.loader = {.images_per_second = 6400, .processor_seconds = 1.0 / 320};
  EXPECT_EQ(PredictRow(facts, Over("100gbit"), 2).limit, PlanLimit::kCompute)
      << "two cores decode 640 images a second";
  facts.loader.processor_seconds = 1.0 / 160;
  EXPECT_DOUBLE_EQ(PredictRow(facts, Over("100gbit"), 2).seconds, 0.2);
}

TEST(PredictRow, DecodingTakesCoresFromComputing) {
  NodeFacts facts = Facts();
  facts.loader = {.images_per_second = 6400, .processor_seconds = 1.0 / 640};
  EXPECT_DOUBLE_EQ(PredictRow(facts, Over("1gbit"), 1).step.compute, 0.1 + 64.0 / 640 / 2);
  facts.cores = 3;
  EXPECT_DOUBLE_EQ(PredictRow(facts, Over("1gbit"), 1).step.compute, 0.1) << "one core was idle";
}

TEST(PredictRow, OneFileServerFeedsAllNodes) {
  NodeFacts facts = Facts();
  facts.loader.bytes_per_image = 100e3;
  PlanQuestion question = Over("100gbit");
  question.data_link = *ReadLink("1gbit");
  const PlanRow row = PredictRow(facts, question, 4);
  EXPECT_EQ(row.limit, PlanLimit::kFileServer);
  EXPECT_NEAR(row.images_per_second(), question.data_link->bytes_per_second() / 100e3, 1e-6);
}

TEST(PredictRow, CostsWhatItsNodesCostWhileTheyRun) {
  PlanQuestion question = Over("100gbit");
  EXPECT_EQ(PredictRow(Facts(), question, 1).cost, 0);
  question.price = 3.6;
  EXPECT_DOUBLE_EQ(PredictRow(Facts(), question, 1).cost, 1e6 / 640 / 1000) << "a million images";
  NodeFacts facts = Facts();
  facts.train_images = 64'000;
  EXPECT_DOUBLE_EQ(PredictRow(facts, question, 1).cost, 0.1);
  const PlanRow two = PredictRow(facts, question, 2);
  EXPECT_DOUBLE_EQ(two.cost, 0.1 / two.efficiency);
}

TEST(EvenBuckets, AreSplitAsATrainerSplitsAModel) {
  EXPECT_THAT(EvenBuckets(100e3), ElementsAre(65536, 100e3 - 65536));
  const std::vector<double> large = EvenBuckets(102e6);
  EXPECT_EQ(large[0], 1 << 20);
  EXPECT_EQ(large[1], 102e6 / 8);
  double sum = 0;
  for (const double bucket : large) sum += bucket;
  EXPECT_DOUBLE_EQ(sum, 102e6);
}

}  // namespace
}  // namespace tutti::bench
