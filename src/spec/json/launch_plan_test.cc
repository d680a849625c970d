#include "spec/json/launch_plan.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace tutti::spec {
namespace {
using ::testing::HasSubstr;
using ::testing::Not;

LaunchPlan APlan() {
  LaunchPlan plan;
  plan.allocation_id = "a1";
  plan.job_id = "job";
  plan.node_index = 1;
  plan.nodes = {{"n0", "127.0.0.2", 0, 2}, {"n1", "127.0.0.3", 2, 2}};
  plan.distribution = {"mpi", 2, 0, 0};
  plan.command = "echo ${{inputs.x}} \"\n\xc3\xa9";
  plan.environment_variables = {{"A", "1"}};
  plan.snapshot = "sha256:00";
  plan.inputs["x"] = {"uri_file", "/data/x", "download", "", {"", 4}};
  plan.outputs["model"] = {"uri_folder", "upload"};
  plan.directory = "/scratch/a1";
  plan.shared_folder = "/scratch";
  plan.resume = "earlier";
  plan.resume_outputs = "/home/jobs/earlier/outputs";
  plan.memory_bytes = int64_t{1} << 40;
  plan.timeout_seconds = 1.5;
  plan.service_file = "/run/service.json";
  plan.launcher_token = "dcba";
  plan.job_token = "abcd";
  return plan;
}

std::string Changed(const char* field, nlohmann::json value) {
  nlohmann::json document = nlohmann::json::parse(ToJson(APlan()));
  document[field] = std::move(value);
  return document.dump();
}

std::string ErrorOf(const std::string& text) {
  return std::string(LaunchPlanFromJson(text).status().message());
}

TEST(LaunchPlan, ReadsBackEveryFieldThatItWrote) {
  const std::string text = ToJson(APlan());
  const auto plan = LaunchPlanFromJson(text);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ToJson(*plan), text);
  EXPECT_EQ(plan->command, APlan().command);
  EXPECT_EQ(plan->nodes[1].first_rank, 2);
  EXPECT_EQ(plan->distribution.type, "mpi");
  EXPECT_EQ(plan->inputs.at("x").mode, "download");
  EXPECT_EQ(plan->inputs.at("x").location.line, 4);
  EXPECT_EQ(plan->outputs.at("model").mode, "upload");
  EXPECT_EQ(plan->memory_bytes, int64_t{1} << 40);
  EXPECT_EQ(plan->timeout_seconds, 1.5);
  EXPECT_EQ(plan->WorldSize(), 4);
  EXPECT_EQ(plan->shared_folder, "/scratch");
  EXPECT_EQ(plan->resume, "earlier");
  EXPECT_EQ(plan->resume_outputs, "/home/jobs/earlier/outputs");
}

TEST(LaunchPlan, SaysWhatIsLookedAtOnlyWhereItIsTheLaunchers) {
  EXPECT_THAT(ToJson(APlan()), Not(HasSubstr("\"checks\"")));
  LaunchPlan looks = APlan();
  looks.checks = NodeChecks{"/opt/check", 5, {"eth0"}};
  const auto plan = LaunchPlanFromJson(ToJson(looks));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->checks, looks.checks);
  EXPECT_THAT(ErrorOf(Changed("checks", 7)), HasSubstr("checks must be an object"));
  EXPECT_THAT(ErrorOf(Changed("checks", {{"command", ""}, {"timeout_seconds", 0}})),
              HasSubstr("checks.timeout_seconds"));
}

TEST(LaunchPlan, SaysWhatDataMayTakeOnlyWhereThereIsALimit) {
  LaunchPlan plan = APlan();
  EXPECT_THAT(ToJson(plan), Not(HasSubstr("data_bytes")));
  plan.data_bytes = int64_t{1} << 40;
  const auto back = LaunchPlanFromJson(ToJson(plan));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->data_bytes, int64_t{1} << 40);
}

TEST(LaunchPlan, SaysOfACourierThatItIsOne) {
  LaunchPlan plan = APlan();
  EXPECT_THAT(ToJson(plan), Not(HasSubstr("courier")));
  EXPECT_FALSE(LaunchPlanFromJson(ToJson(plan))->is_courier);
  plan.is_courier = true;
  EXPECT_TRUE(LaunchPlanFromJson(ToJson(plan))->is_courier);
  EXPECT_FALSE(LaunchPlanFromJson(ToJson(plan))->measures_usage) << "as of an earlier service";
  plan.measures_usage = true;
  EXPECT_TRUE(LaunchPlanFromJson(ToJson(plan))->measures_usage);
  EXPECT_THAT(ErrorOf(Changed("courier", 7)), HasSubstr("courier"));
}

TEST(LaunchPlan, NamesSecretsOnlyWhereThereAreSome) {
  LaunchPlan plan = APlan();
  EXPECT_THAT(ToJson(plan), Not(HasSubstr("secret")));  // that an older launcher takes it
  plan.secret_variables = {{"TOKEN", "hub"}};
  plan.secret_files = {{"KEY", "deploy"}};
  plan.mounts = {"train"};
  const auto back = LaunchPlanFromJson(ToJson(plan));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->secret_variables, plan.secret_variables);
  EXPECT_EQ(back->secret_files, plan.secret_files);
  EXPECT_EQ(back->mounts, plan.mounts);
  EXPECT_TRUE(back->has_secrets());
  EXPECT_FALSE(APlan().has_secrets());
}

TEST(LaunchPlan, SaysThatThereIsTrackingOnlyWhereThereIs) {
  LaunchPlan plan = APlan();
  EXPECT_THAT(ToJson(plan), Not(HasSubstr("tracks")));  // that an older launcher takes it
  EXPECT_FALSE(LaunchPlanFromJson(ToJson(plan))->tracks);
  plan.tracks = true;
  EXPECT_TRUE(LaunchPlanFromJson(ToJson(plan))->tracks);
}

TEST(LaunchPlan, AnInfiniteTimeoutIsNoLimit) {
  LaunchPlan plan = APlan();
  plan.timeout_seconds = std::numeric_limits<double>::infinity();
  plan.grace_seconds = std::numeric_limits<double>::infinity();
  const auto back = LaunchPlanFromJson(ToJson(plan));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->timeout_seconds, 0);
  EXPECT_GE(back->grace_seconds, 1e9);
}

TEST(LaunchPlan, NamesTheFieldThatIsUnknownMissingOrOfTheWrongType) {
  EXPECT_EQ(ErrorOf(Changed("colour", 1)), "launch plan: unknown field colour");
  EXPECT_EQ(ErrorOf(Changed("command", 1)), "launch plan: command must be a string");
  EXPECT_EQ(ErrorOf(Changed("master_port", 70000)),
            "launch plan: master_port must be from 1 to 65535, but is 70000");
  EXPECT_THAT(ErrorOf(Changed("inputs", {{"x", {{"type", 1}}}})), HasSubstr("inputs.x.type"));
  EXPECT_THAT(ErrorOf(Changed("nodes", {1})), HasSubstr("nodes[0] must be an object"));
  EXPECT_THAT(ErrorOf(Changed("memory_bytes", 1e30)), HasSubstr("memory_bytes"));
  EXPECT_THAT(ErrorOf(Changed("memory_bytes", 18446744073709551615u)), HasSubstr("memory_bytes"));
  nlohmann::json document = nlohmann::json::parse(ToJson(APlan()));
  document.erase("job_token");
  EXPECT_EQ(ErrorOf(document.dump()), "launch plan: job_token is missing");
}

TEST(LaunchPlan, TakesPlansOfBeforeAllocationsHadTokens) {
  nlohmann::json document = nlohmann::json::parse(ToJson(APlan()));
  document.erase("launcher_token");
  const auto plan = LaunchPlanFromJson(document.dump());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->launcher_token, "");
}

TEST(LaunchPlan, RefusesANodeIndexOutsideOfItsNodes) {
  EXPECT_THAT(ErrorOf(Changed("node_index", 2)), HasSubstr("node_index must be from 0 to 1"));
  EXPECT_FALSE(LaunchPlanFromJson(Changed("nodes", nlohmann::json::array())).ok());
}

TEST(LaunchPlan, RefusesNodesThatAreNotInRankOrder) {
  nlohmann::json nodes = nlohmann::json::parse(ToJson(APlan()))["nodes"];
  nodes[1]["first_rank"] = 0;
  EXPECT_THAT(ErrorOf(Changed("nodes", nodes)), HasSubstr("nodes[1].first_rank must be 2"));
}

TEST(LaunchPlan, SaysThatItIsNotJson) {
  EXPECT_EQ(ErrorOf("{"), "launch plan: is not JSON");
  EXPECT_EQ(ErrorOf("[]"), "launch plan: is not a JSON object");
}

TEST(LaunchPlan, OfWholeNodesSaysNothingOfParts) {
  EXPECT_THAT(ToJson(APlan()), Not(HasSubstr("\"cores\"")));
  EXPECT_THAT(ToJson(APlan()), Not(HasSubstr("\"gpus\"")));
  EXPECT_FALSE(APlan().has_part());
  EXPECT_THAT(ErrorOf(Changed("cores", {1, -1})), HasSubstr("cores must hold whole numbers"));
  EXPECT_THAT(ErrorOf(Changed("cores", {1.5})), HasSubstr("cores must hold whole numbers"));
}

}  // namespace
}  // namespace tutti::spec
