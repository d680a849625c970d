#include "platform/client/connection/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::client {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Views, ReadsAJob) {
  const auto job = Parse<JobView>(R"({"id": "brave_ant_1", "sequence": 4, "state": "Running",
    "reason": "2 nodes", "created": "2026-01-01T00:00:00Z", "started": null, "node_count": 2,
    "world_size": 4, "expected_start": null, "nodes": ["node-0", "node-1"], "warnings": ["w"],
    "events": [{"sequence": 1, "time": "t", "state": "Queued", "reason": "r"}], "new": {}})");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->id, "brave_ant_1");
  EXPECT_EQ(job->world_size, 4);
  EXPECT_EQ(job->started, "");
  EXPECT_EQ(job->nodes.size(), 2u);
  EXPECT_EQ(job->events.at(0).state, "Queued");
  EXPECT_FALSE(job->ended_already());
}

TEST(Views, ReadsWhatAJobHasLogged) {
  const auto job =
      Parse<JobView>(R"({"id": "a", "logged": {"metrics": [{"name": "loss", "value": 0.5},
    {"name": "bad", "value": null}, 3], "models": [{"name": "model", "path": "outputs/m"}],
    "artifacts": [{"name": "roc.png", "path": "outputs/a/roc.png"}],
    "runs": [{"id": "r", "name": "fold", "parent": null, "metrics": [{"name": "inner", "value": 1}]}], "params": [{"name": "rate", "value": "0.1"}, 3]}})");
  ASSERT_TRUE(job.ok());
  ASSERT_EQ(job->logged.metrics.size(), 2u);
  EXPECT_EQ(job->logged.metrics[0].value, 0.5);
  EXPECT_EQ(job->logged.metrics[1].value, std::nullopt);
  EXPECT_EQ(job->logged.runs.at(0).name, "fold");
  EXPECT_EQ(job->logged.runs.at(0).parent, "");
  EXPECT_EQ(job->logged.runs.at(0).metrics.at(0).name, "inner");
  ASSERT_EQ(job->logged.params.size(), 1u);
  EXPECT_EQ(job->logged.params[0].value, "0.1");
  EXPECT_EQ(job->logged.models.at(0).path, "outputs/m");
  EXPECT_EQ(job->logged.artifacts.at(0).name, "roc.png");
}

TEST(Views, WrongTypesAreEmptyNotFatal) {
  const auto job = Parse<JobView>(R"({"id": 7, "nodes": {}, "events": [3], "node_count": "two"})");
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(job->id, "");
  EXPECT_TRUE(job->nodes.empty());
  EXPECT_TRUE(job->events.empty());
}

TEST(Views, WhatIsNoDocumentIsAnError) {
  EXPECT_FALSE(Parse<JobView>("<html>").ok());
  EXPECT_FALSE(Parse<JobListView>("{}").ok());
  EXPECT_FALSE(Parse<NodesView>(R"({"nodes": 3})").ok());
  EXPECT_FALSE(Parse<FilesView>("").ok());
  EXPECT_FALSE(ParseFollowLine("{").ok());
}

TEST(Views, ReadsFollowLinesAndSkipsUnknownKinds) {
  const auto line = ParseFollowLine(
      R"({"type": "output", "cursor": "c5", "rank": 1, "stream": "stderr", "text": "hi"})");
  ASSERT_TRUE(line.ok() && line->has_value());
  EXPECT_EQ((*line)->rank, 1);
  EXPECT_EQ((*line)->cursor, "c5");
  EXPECT_FALSE(ParseFollowLine(R"({"type": "heartbeat"})")->has_value());
}

TEST(Views, ReadsNodesAndFiles) {
  const auto view = Parse<NodesView>(
      R"({"nodes": [{"name": "node-0", "cores": [0, 1], "memory_bytes": 5, "job": null}],
          "warnings": ["w"]})");
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(view->nodes.at(0).cores.size(), 2u);
  EXPECT_EQ(view->nodes.at(0).job, "");
  EXPECT_EQ(view->warnings, std::vector<std::string>{"w"});
  EXPECT_TRUE(view->file_servers.empty()) << "an older service tells of none";
  EXPECT_EQ(Parse<FilesView>(R"({"files": [{"path": "a", "bytes": -3}]})")->files.at(0).bytes, 0u);
}

TEST(Views, ReadsFileServers) {
  const auto view = Parse<NodesView>(R"({"nodes": [], "file_servers": [
      {"name": "photos", "folder": "/data/photos", "address": "10.0.0.5", "port": 2050,
       "access": "read_only", "state": "running", "reason": null,
       "fill": {"state": "filling", "from": "s3://b/x", "files": 1, "of_files": 2, "bytes": 3,
                "of_bytes": 4, "updated": "t", "reason": null}},
      {"name": "sets", "state": "failed", "reason": "its port is in use", "fill": null}, 7]})");
  ASSERT_TRUE(view.ok()) << view.status();
  ASSERT_EQ(view->file_servers.size(), 2u);
  EXPECT_EQ(view->file_servers[0].port, 2050);
  EXPECT_EQ(view->file_servers[0].reason, "");
  EXPECT_EQ(view->file_servers[0].fill->of_bytes, 4);
  EXPECT_EQ(view->file_servers[1].reason, "its port is in use");
  EXPECT_FALSE(view->file_servers[1].fill.has_value());
}

TEST(Views, AJobWithoutCodeHasNoSnapshot) {
  EXPECT_EQ(CreateJobBody({.file = "job.yml", .text = "a: \"b\"", .base_directory = "/x"}),
            R"({"base_directory":"/x","file":"job.yml","snapshot":null,"text":"a: \"b\""})");
}

TEST(Views, AJobIsSubmittedAgainAsItWas) {
  const SubmissionView submission{.file = "job.yml",
                                  .text = "command: ls\n",
                                  .base_directory = "/x",
                                  .snapshots = {{"/x/code", "sha256:0"}},
                                  .origin = {{"git_commit", "abc"}}};
  const auto again = Parse<SubmissionView>(CreateJobBody(submission));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(CreateJobBody(*again), CreateJobBody(submission));
  EXPECT_EQ(Parse<SubmissionView>(R"({"base_directory": null, "origin": []})")->base_directory, "");
}

TEST(Views, ReadsWhatWasRemoved) {
  const auto secrets = Parse<SecretsView>(R"({"secrets": [
      {"name": "hub", "created": "2026-11-25T10:00:00Z", "set": "2026-11-25T11:00:00Z",
       "readable": true, "waiting_jobs": ["a"]}, {"name": "old"}]})");
  ASSERT_TRUE(secrets.ok());
  ASSERT_EQ(secrets->secrets.size(), 2u);
  EXPECT_EQ(secrets->secrets[0].set, "2026-11-25T11:00:00Z");
  EXPECT_TRUE(secrets->secrets[0].readable);
  EXPECT_EQ(secrets->secrets[0].waiting_jobs, std::vector<std::string>{"a"});
  EXPECT_FALSE(secrets->secrets[1].readable);
  EXPECT_FALSE(Parse<SecretsView>("{}").ok());
  EXPECT_EQ(Parse<spec::FailedJobsView>(R"({"failed_jobs": ["a", "b"]})")->failed_jobs,
            (std::vector<std::string>{"a", "b"}));
  const auto pruned = Parse<PrunedView>(R"({"dry_run": false, "bytes": 5, "removed": [
      {"kind": "data", "name": "k", "bytes": 5, "last_used": "t", "why": "old", "place": "hpc"},
      {"kind": "logs", "name": "j", "place": null}, 7], "models": {"versions": 3, "bytes": 7}})");
  ASSERT_TRUE(pruned.ok()) << pruned.status();
  ASSERT_EQ(pruned->removed.size(), 2u);
  EXPECT_EQ(pruned->removed.front().place, "hpc");
  EXPECT_EQ(pruned->removed.back().place, "");
  EXPECT_EQ(pruned->removed.front().kind, "data");
  EXPECT_EQ(pruned->removed.front().bytes, 5u);
  EXPECT_EQ(pruned->removed.front().why, "old");
  EXPECT_FALSE(Parse<PrunedView>("{}").ok());
  EXPECT_EQ(pruned->models.versions, 3);
  EXPECT_EQ(pruned->models.bytes, 7u);
  const auto job =
      Parse<JobView>(R"({"removed": [{"kind": "logs", "time": "2026-11-24T01:02:03Z"}]})");
  ASSERT_EQ(job->removed.size(), 1u);
  EXPECT_EQ(job->removed[0].kind, "logs");
  EXPECT_FALSE(job->stored_logs.has_value());
  EXPECT_FALSE(job->mlflow_run.has_value());
  EXPECT_EQ(Parse<JobView>(R"({"mlflow_run": {"id": "beef", "name": "n", "experiment_id": "1"}})")
                ->mlflow_run->id,
            "beef");
  const auto brought = Parse<JobView>(
      R"({"stored_logs": {"place": "azureml://datastores/d/paths/j", "state": "pending",
          "reason": "no route", "time": "2026-11-24T01:02:03Z"}})");
  ASSERT_TRUE(brought->stored_logs.has_value());
  EXPECT_EQ(brought->stored_logs->place, "azureml://datastores/d/paths/j");
  EXPECT_EQ(brought->stored_logs->reason, "no route");
}

TEST(ModelViews, ReadsAVersionWithWhatItWasMadeOf) {
  const auto view = Parse<ModelVersionView>(R"({
    "name": "net", "version": "3", "type": "mlflow_model", "stage": "Production", "bytes": 12,
    "file_count": 2, "aliases": ["best"], "tags": {"team": "vision"}, "archived": true,
    "files": [{"path": "MLmodel", "bytes": 2}],
    "lineage": {"job": "train-1", "path": "outputs/model", "code": "sha256:ab",
                "environment": {"name": "torch"}, "values": {"lr": "0.1"},
                "data": [{"input": "images", "asset": "azureml:train:2", "address": "/d"},
                         {"input": "more", "asset": "", "address": "/e"}]}})");
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->version, "3");
  EXPECT_EQ(view->bytes, 12u);
  EXPECT_TRUE(view->archived);
  EXPECT_THAT(view->aliases, ElementsAre("best"));
  EXPECT_THAT(view->tags, ElementsAre(Pair("team", "vision")));
  ASSERT_EQ(view->files->size(), 1u);
  EXPECT_EQ(view->files->at(0).path, "MLmodel");
  const auto lineage = Parse<spec::LineageView>(view->lineage.text);
  ASSERT_TRUE(lineage.ok()) << lineage.status();
  EXPECT_EQ(lineage->job, "train-1");
  EXPECT_EQ(lineage->submitted, "");
  EXPECT_EQ(lineage->environment.name, "torch");
  EXPECT_THAT(lineage->values, ElementsAre(Pair("lr", "0.1")));
  ASSERT_EQ(lineage->data.size(), 2u);
  EXPECT_EQ(lineage->data[0].asset, "azureml:train:2");
  EXPECT_EQ(lineage->data[1].address, "/e");
}

TEST(ModelViews, ReadsListsAndTheirCursors) {
  const auto models = Parse<ModelsView>(
      R"({"models": [{"name": "a", "latest": null, "versions": 4}, 7], "after": "a"})");
  ASSERT_TRUE(models.ok());
  ASSERT_EQ(models->models.size(), 1u);
  EXPECT_EQ(models->models.front().versions, 4);
  EXPECT_EQ(models->models.front().latest, "");
  EXPECT_EQ(models->after, "a");
  const auto versions =
      Parse<ModelVersionsView>(R"({"versions": [{"version": "9"}], "before": null})");
  ASSERT_TRUE(versions.ok());
  ASSERT_EQ(versions->versions.size(), 1u);
  EXPECT_FALSE(versions->before.has_value());
}

TEST(ModelViews, TakesAnyText) {
  for (const char* text : {"", "[]", "7", "{"}) {
    EXPECT_FALSE(Parse<ModelsView>(text).ok()) << text;
    EXPECT_FALSE(Parse<ModelVersionView>(text).ok()) << text;
    EXPECT_FALSE(Parse<ModelVersionsView>(text).ok()) << text;
  }
  const auto odd = Parse<ModelVersionView>(
      R"({"name": 5, "files": {"a": 1}, "tags": [1], "lineage": {"data": [1], "environment": 3}})");
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd->name, "");
}

}  // namespace
}  // namespace tutti::client
