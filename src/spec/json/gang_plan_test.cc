#include "spec/json/gang_plan.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

LaunchPlan SharedOf(int nodes) {
  LaunchPlan plan;
  plan.allocation_id = "a.1";
  plan.job_id = "a";
  for (int i = 0; i < nodes; ++i) {
    plan.nodes.push_back({absl::StrCat("n", i), absl::StrCat("127.77.0.", i + 1), i, 1});
  }
  plan.command = "echo \"${{inputs.x}}\"";
  plan.environment_variables = {{"A", "1"}};
  plan.launcher_token = "s3cret";
  return plan;
}

class GangPlanTest : public ::testing::Test {
 protected:
  std::filesystem::path Write(const char* name, const std::string& text) const {
    EXPECT_TRUE(base::WriteFileAtomic(folder_.path() / name, text).ok());
    return folder_.path() / name;
  }

  const base::TemporaryDirectory folder_;
  const NodePart part_{1, "/scratch/n1/a.1", "/scratch/n1/a.0", int64_t{1} << 40};
};

TEST_F(GangPlanTest, ANodesPartAndWhatItSharesAreTheWholePlan) {
  const LaunchPlan shared = SharedOf(3);
  const auto file = Write("plan.json", ToJson(part_, Write("shared.json", SharedToJson(shared))));
  const auto plan = ReadLaunchPlan(file);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ToJson(*plan), ToJson(PlanFor(shared, part_)));
  EXPECT_EQ(plan->node().name, "n1");
  EXPECT_EQ(plan->directory, "/scratch/n1/a.1");
  EXPECT_EQ(plan->former_directory, "/scratch/n1/a.0");
  EXPECT_EQ(plan->memory_bytes, int64_t{1} << 40);
  EXPECT_EQ(NodePartOf(*base::ReadFile(file))->node_index, 1);
}

TEST_F(GangPlanTest, ANodesPartDoesNotGrowWithTheGang) {
  EXPECT_LT(ToJson(part_, "/home/shared/a.1.json").size(), 300u);
  EXPECT_THAT(SharedToJson(SharedOf(1000)), Not(HasSubstr("node_index")));
}

TEST_F(GangPlanTest, AWholePlanIsReadAsItWasBeforeThereWereParts) {
  const LaunchPlan whole = PlanFor(SharedOf(2), part_);
  const auto plan = ReadLaunchPlan(Write("plan.json", ToJson(whole)));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ToJson(*plan), ToJson(whole));
  EXPECT_EQ(ToJson(*NodePartOf(ToJson(whole)), "/x"), ToJson(part_, "/x"));
}

TEST_F(GangPlanTest, SaysWhatIsWrongAndInWhichFile) {
  const auto shared = Write("shared.json", SharedToJson(SharedOf(1)));
  const auto of_two = ReadLaunchPlan(Write("plan.json", ToJson(part_, shared)));
  EXPECT_THAT(of_two.status().message(), HasSubstr("node_index must be from 0 to 0"));
  EXPECT_THAT(of_two.status().message(), HasSubstr("shared.json"));
  EXPECT_EQ(ReadLaunchPlan(Write("plan.json", ToJson(part_, "/no/such"))).status().code(),
            absl::StatusCode::kNotFound);
  nlohmann::json document = nlohmann::json::parse(ToJson(part_, shared));
  document["colour"] = 1;
  EXPECT_EQ(NodePartOf(document.dump()).status().message(), "launch plan: unknown field colour");
  document.erase("colour");
  document["node_index"] = -1;
  EXPECT_FALSE(ReadLaunchPlan(Write("plan.json", document.dump())).ok());
  EXPECT_FALSE(NodePartOf("").ok());
}

TEST_F(GangPlanTest, WhatAJobHasOfANodeIsTheNodesOwn) {
  NodePart part = part_;
  EXPECT_THAT(ToJson(part, "/x"), Not(HasSubstr("cores")));
  part.cores = {2, 5};
  part.gpus = {"GPU-1"};
  const LaunchPlan shared = SharedOf(3);
  const auto file = Write("plan.json", ToJson(part, Write("shared.json", SharedToJson(shared))));
  const auto plan = ReadLaunchPlan(file);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->has_part());
  EXPECT_EQ(plan->cores, part.cores);
  EXPECT_EQ(plan->gpus, part.gpus);
  EXPECT_EQ(ToJson(*plan), ToJson(PlanFor(shared, part)));
  EXPECT_EQ(SharedToJson(*plan), SharedToJson(shared));
}

}  // namespace
}  // namespace tutti::spec
