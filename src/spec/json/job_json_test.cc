// Covers: json_fields.cc, place_json.cc.
#include "spec/json/job_json.h"

#include <gmock/gmock.h>

#include <optional>

namespace tutti::spec {
namespace {

JobSpec AJob() {
  JobSpec spec;
  spec.file_name = "job.yml";
  spec.name = "n";
  spec.command = "true \xc3\xa9 \"";
  spec.command_line = 3;
  spec.code = "/code";
  spec.additional_includes = {"/shared"};
  spec.tags = {{"a", "b"}};
  spec.inputs["lr"] = {"number", "", "ro_mount", "0.1", {"", 7}};
  spec.inputs["rate"] = {"number", "", "direct", "", {"", 8}, true};
  spec.outputs["model"] = {.type = "uri_folder", .mode = "upload"};
  spec.environment = {"mine", false, "3.8", {{"numpy==1.21", "conda.yaml:3"}}, {"--pre"}};
  spec.environment.variables = {{"FOO", "bar"}};
  spec.environment.as_of_pins = false;
  spec.environment.torch = "cpu";
  spec.environment.programs = {{"g++", "gxx", "conda.yaml:4"}};
  spec.environment.image = {"", "/docker", "Dockerfile", "job.yml:4", "Dockerfile:6: RUN apt-get"};
  spec.distribution = {"tensorflow", 1, 2, 1};
  spec.instance_count = 3;
  spec.timeout = absl::Milliseconds(1500);
  spec.priority = Priority::kHigh;
  spec.resume = "earlier";
  return spec;
}

TEST(JobJson, ReadsBackEveryFieldThatItWrote) {
  const auto back = JobSpecFromJson(ToJson(AJob()));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(AJob()));
  EXPECT_EQ(back->timeout, absl::Milliseconds(1500));
  EXPECT_EQ(back->inputs.at("lr").literal, "0.1");
  EXPECT_EQ(back->distribution.parameter_server_count, 1);
  EXPECT_EQ(back->priority, Priority::kHigh);
  EXPECT_EQ(back->resume, "earlier");
  EXPECT_TRUE(back->inputs.at("rate").absent);
  EXPECT_EQ(back->environment.packages.at(0).location, "conda.yaml:3");
  EXPECT_EQ(back->environment.programs.at(0).package, "gxx");
  EXPECT_EQ(back->environment.variables.at("FOO"), "bar");
  EXPECT_FALSE(back->environment.as_of_pins);
  EXPECT_EQ(back->environment.torch, "cpu");
  EXPECT_EQ(back->environment.image.needed_by, "Dockerfile:6: RUN apt-get");
}

TEST(JobJson, ReadsBackWhereAnOutputGoes) {
  JobSpec spec;
  spec.outputs["model"].place = {.kind = StoreKind::kS3,
                                 .container = "sets",
                                 .path = "runs/${{name}}",
                                 .credential = CredentialKind::kAccessKey,
                                 .secret = "datastore.sets",
                                 .datastore = "sets"};
  spec.outputs["plain"];
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(spec));
  EXPECT_EQ(back->outputs.at("model").place->path, "runs/${{name}}");
  EXPECT_FALSE(back->outputs.at("plain").place.has_value());
}

TEST(JobJson, ReadsBackWhichSecretsAJobIsGiven) {
  JobSpec spec = AJob();
  EXPECT_EQ(ToJson(spec).find("secret"), std::string::npos);
  spec.secret_variables = {{"TOKEN", "hub"}};
  spec.secret_files = {{"KEY", "deploy"}};
  spec.mounts = {"train"};
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->secret_variables, spec.secret_variables);
  EXPECT_EQ(back->secret_files, spec.secret_files);
  EXPECT_EQ(back->mounts, spec.mounts);
}

TEST(JobJson, ReadsBackWhereItsLogsGo) {
  JobSpec spec = AJob();
  EXPECT_EQ(ToJson(spec).find("logs_place"), std::string::npos);
  spec.logs_place = DataPlace{.kind = StoreKind::kS3,
                              .container = "runs",
                              .path = "logs/${{name}}",
                              .credential = CredentialKind::kAccessKey,
                              .secret = "datastore.runs",
                              .datastore = "runs"};
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(spec));
  EXPECT_EQ(back->logs_place->path, "logs/${{name}}");
}

TEST(JobJson, ReadsBackWhereInAStoreAnInputLies) {
  JobSpec spec = AJob();
  spec.inputs["images"].place = {.kind = StoreKind::kAzureBlob,
                                 .account = "acme",
                                 .container = "images",
                                 .endpoint = "http://127.0.0.1:10000/acme",
                                 .region = "r",
                                 .path = "train/*.png",
                                 .is_pattern = true,
                                 .credential = CredentialKind::kSas,
                                 .secret = "datastore.blobs",
                                 .datastore = "blobs"};
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(spec));
  const DataPlace& place = *back->inputs.at("images").place;
  EXPECT_EQ(place.kind, StoreKind::kAzureBlob);
  EXPECT_EQ(place.path, "train/*.png");
  EXPECT_EQ(place.credential, CredentialKind::kSas);
  EXPECT_EQ(place.secret, "datastore.blobs");
  EXPECT_FALSE(back->inputs.at("lr").place.has_value()) << "as of jobs of before there were stores";
  EXPECT_EQ(JobSpecFromJson(R"({"inputs": {"x": {"place": {"kind": "tape"}}}})").status().message(),
            "job: inputs.x.place.kind is unknown");
}

TEST(JobJson, ReadsBackTheVersionThatAnInputWasNamedBy) {
  JobSpec spec = AJob();
  spec.inputs["model"] = {.type = "custom_model", .path = "/trees/1", .asset = "azureml:net:1"};
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->inputs.at("model").asset, "azureml:net:1");
  EXPECT_EQ(back->inputs.at("lr").asset, "");
}

TEST(JobJson, ReadsBackWhichFilesOfAFolderAnInputIs) {
  JobSpec job;
  job.inputs["a"] = {.path = "/data", .pattern = "**/*.png"};
  const auto back = JobSpecFromJson(ToJson(job));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->inputs.at("a").pattern, "**/*.png");
  EXPECT_EQ(back->inputs.at("a").table, "");
}

TEST(JobJson, ReadsBackWhatATableNames) {
  JobSpec spec = AJob();
  spec.inputs["t"] = {.type = "mltable", .mode = "eval_mount"};
  Input& file = spec.inputs["t.paths[0]"] = {
      .path = "/data", .table = "t", .pattern = "*.csv", .placed = "x/y"};
  file.place = {.kind = StoreKind::kS3,
                .container = "sets",
                .path = "[ab].csv",
                .is_pattern = true,
                .has_classes = true};
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(spec));
  const Input& read = back->inputs.at("t.paths[0]");
  EXPECT_EQ(read.table, "t");
  EXPECT_EQ(read.pattern, "*.csv");
  EXPECT_EQ(read.placed, "x/y");
  EXPECT_TRUE(read.place->has_classes);
  EXPECT_EQ(back->inputs.at("t").table, "");
}

TEST(JobJson, ReadsBackWhatARayJobSaysOfItsCluster) {
  JobSpec spec = AJob();
  spec.distribution = {.type = "ray", .ray = {7000, false, 7001, "--num-cpus 0", "--labels a=b"}};
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(ToJson(*back), ToJson(spec));
  const RaySettings& ray = back->distribution.ray;
  EXPECT_EQ(ray.port, 7000);
  EXPECT_FALSE(ray.dashboard);
  EXPECT_EQ(ray.worker_options, "--labels a=b");
}

TEST(JobJson, WholeNodesAreAskedForRefusedOrTheComputesToSay) {
  JobSpec spec = AJob();
  for (const std::optional<bool> exclusive : {std::optional<bool>(), {true}, {false}}) {
    spec.slurm.exclusive = exclusive;
    EXPECT_EQ(JobSpecFromJson(ToJson(spec))->slurm.exclusive, exclusive);
  }
  // As earlier versions wrote of a job that says nothing of it.
  EXPECT_EQ(JobSpecFromJson(R"({"slurm": {"exclusive": false}})")->slurm.exclusive, std::nullopt);
}

TEST(JobJson, NoTimeLimitStaysNoTimeLimit) {
  JobSpec spec = AJob();
  spec.timeout = absl::InfiniteDuration();
  const auto back = JobSpecFromJson(ToJson(spec));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->timeout, absl::InfiniteDuration());
}

TEST(JobJson, AMissingFieldKeepsItsDefault) {
  const auto spec = JobSpecFromJson(R"({"command": "true"})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->instance_count, 1);
  EXPECT_EQ(spec->timeout, absl::InfiniteDuration());
}

TEST(JobJson, TheFirstVersionsEnvironmentIsTheHost) {
  const auto spec = JobSpecFromJson(R"({"command": "true", "environment": "host"})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_TRUE(spec->environment.is_host);
}

TEST(JobJson, NamesAFieldThatIsUnknownOrOfTheWrongType) {
  EXPECT_EQ(JobSpecFromJson(R"({"x": 1})").status().message(), "job: unknown field x");
  EXPECT_EQ(JobSpecFromJson(R"({"priority": "urgent"})").status().message(),
            "job: priority is unknown: \"urgent\"");
  EXPECT_EQ(JobSpecFromJson(R"({"tags": {"a": 1}})").status().message(),
            "job: tags.a must be a string");
}

TEST(JobJson, BytesThatAreNoUtf8DoNotStopTheWriter) {
  JobSpec spec;
  spec.command = "\xff";
  EXPECT_TRUE(JobSpecFromJson(ToJson(spec)).ok());
}

TEST(JobJson, APartOfANodeIsKeptAndElseNotWritten) {
  JobSpec spec;
  EXPECT_EQ(ToJson(spec).find("\"part\""), std::string::npos);
  for (const NodeShare& part : {NodeShare{}, NodeShare{2, int64_t{1} << 40, 8}}) {
    spec.share = part;
    EXPECT_EQ(JobSpecFromJson(ToJson(spec))->share, part);
  }
  EXPECT_FALSE(JobSpecFromJson(R"({"part": {"cpus": -1}})").ok());
}

}  // namespace
}  // namespace tutti::spec
