// Covers: store_walk.cc.
#include "platform/mlflow/file_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::mlflow {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

class FileStoreTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) {
    fs::create_directories((outputs_ / path).parent_path());
    std::ofstream(outputs_ / path) << text;
  }
  std::string Text(const std::string& path) { return *base::ReadFile(outputs_ / path); }
  std::vector<std::string> Metrics() {
    std::vector<std::string> texts;
    for (const Metric& metric : LoggedBelow(outputs_).metrics) {
      texts.push_back(absl::StrCat(metric.name, "=", metric.value));
    }
    return texts;
  }

  base::TemporaryDirectory folder_;
  fs::path outputs_ = folder_.path() / "job" / "outputs";
};

TEST_F(FileStoreTest, WithoutAStoreNothingWasLogged) {
  EXPECT_THAT(LoggedBelow(outputs_).metrics, IsEmpty());
  EXPECT_THAT(LoggedBelow(outputs_).models, IsEmpty());
  AdoptMovedStores(outputs_);
}

TEST_F(FileStoreTest, TheLastValueIsThatOfTheHighestStep) {
  Put("mlruns/0/r/metrics/loss", "1000 1.0 0\n1002 0.25 2\n1003 0.5 1\n");
  Put("mlruns/0/r/metrics/evaluation/top1", "1000 nan 0\n");
  Put("mlruns/0/r/metrics/system/cpu_utilization", "1000 12 0\n");
  Put("mlruns/0/r/metrics/none", "no such line\n");
  const auto metrics = LoggedBelow(outputs_).metrics;
  ASSERT_THAT(metrics,
              ElementsAre(Field(&Metric::name, "evaluation/top1"), Field(&Metric::name, "loss")));
  EXPECT_TRUE(std::isnan(metrics[0].value));
  EXPECT_EQ(metrics[1].value, 0.25);
  EXPECT_EQ(metrics[1].step, 2);
}

TEST_F(FileStoreTest, OfAVeryLongFileItsEndIsRead) {
  std::string lines;
  for (int step = 0; step < 20'000; ++step)
    absl::StrAppend(&lines, "1000 ", step, ".5 ", step, "\n");
  Put("mlruns/0/r/metrics/loss", lines);
  EXPECT_THAT(Metrics(), ElementsAre("loss=19999.5"));
}

TEST_F(FileStoreTest, OfSeveralRunsTheLatestCountsAndRunsWithinRunsDoNot) {
  Put("mlruns/0/a/metrics/loss", "1000 1 0\n");
  Put("mlruns/0/b/metrics/loss", "2000 2 0\n");
  Put("mlruns/0/c/metrics/loss", "3000 3 0\n");
  Put("mlruns/0/c/tags/mlflow.parentRunId", "b");
  EXPECT_THAT(Metrics(), ElementsAre("loss=2"));
}

TEST_F(FileStoreTest, OfEachRunThereIsItsNameItsParentAndWhatItLogged) {
  for (const char* run : {"a", "b", "c"}) {
    Put(absl::StrCat("mlruns/0/", run, "/metrics/loss"), absl::StrCat("1000 ", run[0] - 'a', " 0"));
  }
  Put("mlruns/0/b/meta.yaml", "run_name: 'the fold''s'\nstart_time: 3000\n");
  Put("mlruns/0/b/tags/mlflow.parentRunId", "c");
  Put("mlruns/0/a/meta.yaml", "start_time: 2000\n");
  Put("mlruns/0/a/tags/mlflow.runName", "of MLflow 1");
  Put("mlruns/0/a/tags/mlflow.parentRunId", "c");
  Put("mlruns/0/c/meta.yaml", "start_time: 1000\n");
  std::vector<std::string> runs;
  for (const auto& run : LoggedBelow(outputs_).runs) {
    ASSERT_EQ(run.metrics.size(), 1u);
    runs.push_back(
        absl::StrCat(run.id, " in ", run.parent, ": ", run.name, " ", run.metrics[0].value));
  }
  EXPECT_THAT(runs, ElementsAre("c in :  2", "a in c: of MLflow 1 0", "b in c: the fold's 1"));
}

TEST_F(FileStoreTest, ParamsAreOfTheRunsThatMetricsAreOfAndTheLatestRunCounts) {
  Put("mlruns/0/z/meta.yaml", "start_time: 1000\n");
  Put("mlruns/0/z/params/rate", "0.1");
  Put("mlruns/0/z/params/model/depth", "3\nand more");
  Put("mlruns/0/a/meta.yaml", "start_time: 2000\n");
  Put("mlruns/0/a/params/rate", "0.2");
  Put("mlruns/0/c/params/inner", "1");
  Put("mlruns/0/c/tags/mlflow.parentRunId", "a");
  Put("mlruns-rank-1/0/a/params/other", "1");
  const auto params = LoggedBelow(outputs_).params;
  ASSERT_EQ(params.size(), 2u);
  EXPECT_EQ(params[0].name + "=" + params[0].value, "model/depth=3");
  EXPECT_EQ(params[1].name + "=" + params[1].value, "rate=0.2");
}

TEST_F(FileStoreTest, TheLowestRankThatLoggedSpeaksForAll) {
  Put("mlruns-rank-10/0/a/metrics/loss", "1000 10 0\n");
  Put("mlruns-rank-2/0/a/metrics/loss", "1000 2 0\n");
  Put("mlruns/0/meta.yaml", "name: Default\n");
  EXPECT_THAT(Metrics(), ElementsAre("loss=2"));
  std::vector<std::string> files;
  ForEachMetric(outputs_, [&](const std::string& name, const fs::path& file) {
    EXPECT_EQ(name, "loss");
    files.push_back(file.string());
  });
  EXPECT_THAT(files, ElementsAre(EndsWith("mlruns-rank-2/0/a/metrics/loss"),
                                 EndsWith("mlruns-rank-10/0/a/metrics/loss")));
}

TEST_F(FileStoreTest, OfMoreFilesThanAStoreHasNoMoreAreLookedAt) {
  fs::create_directories(outputs_ / "mlruns/0/r/metrics");
  const base::UniqueFd one = *base::Open(outputs_ / "mlruns/0/r/metrics/m", O_WRONLY | O_CREAT);
  for (int i = 0; i < kMostEntries; ++i) {
    fs::create_hard_link(outputs_ / "mlruns/0/r/metrics/m",
                         outputs_ / absl::StrCat("mlruns/0/r/metrics/", i));
  }
  int visited = 0;
  ForEachMetric(outputs_, [&](const std::string&, const fs::path&) { ++visited; });
  EXPECT_GT(visited, 0);
  EXPECT_LT(visited, kMostEntries);
}

TEST_F(FileStoreTest, ModelsOfBothLayoutsAreFound) {
  Put("mlruns/0/run/artifacts/model/MLmodel", "flavors: {}\n");
  Put("mlruns/0/run/artifacts/MLmodel", "no model: the artifacts' own folder\n");
  Put("mlruns/7/models/m-1/meta.yaml", "model_id: m-1\nname: 'it''s'\n");
  Put("mlruns/7/models/m-1/artifacts/MLmodel", "flavors: {}\n");
  Put("mlruns/7/models/m-2/meta.yaml", "name: unfinished\n");
  Put("mlruns-rank-1/0/run/artifacts/model/MLmodel", "flavors: {}\n");
  const auto models = LoggedBelow(outputs_).models;
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].name, "model");
  EXPECT_EQ(models[0].path, "outputs/mlruns/0/run/artifacts/model");
  EXPECT_EQ(models[1].name, "it's");
  EXPECT_EQ(models[1].path, "outputs/mlruns/7/models/m-1/artifacts");
  EXPECT_EQ(models[2].path, "outputs/mlruns-rank-1/0/run/artifacts/model");
}

TEST_F(FileStoreTest, ArtifactsAreTheFilesOfRunsThatAreOfNoModel) {
  Put("mlruns/0/run/artifacts/model/MLmodel", "flavors: {}\n");
  Put("mlruns/0/run/artifacts/model/data/weights", "1\n");
  Put("mlruns/0/run/artifacts/plots/roc.png", "1\n");
  Put("mlruns-rank-1/0/run/artifacts/note.txt", "1\n");
  const auto artifacts = LoggedBelow(outputs_).artifacts;
  ASSERT_EQ(artifacts.size(), 2u);
  EXPECT_EQ(artifacts[0].name, "plots/roc.png");
  EXPECT_EQ(artifacts[0].path, "outputs/mlruns/0/run/artifacts/plots/roc.png");
  EXPECT_EQ(artifacts[1].path, "outputs/mlruns-rank-1/0/run/artifacts/note.txt");
  for (size_t i = 0; i < kMostArtifacts; ++i) Put(absl::StrCat("mlruns/0/run/artifacts/", i), "");
  EXPECT_EQ(LoggedBelow(outputs_).artifacts.size(), kMostArtifacts);
}

TEST_F(FileStoreTest, ARunThatWasMadeAheadStaysIfItWasUsed) {
  const fs::path store = outputs_ / "mlruns";
  ASSERT_TRUE(MakeStore(store, "mine").ok());
  ASSERT_TRUE(MakeRun(store, "0123abcd").ok());
  ASSERT_TRUE(MakeRun(store, "4567abcd").ok());
  EXPECT_THAT(
      Text("mlruns/0/0123abcd/meta.yaml"),
      AllOf(HasSubstr("run_id: '0123abcd'\n"), HasSubstr("mlruns/0/0123abcd/artifacts'\n")));
  Put("mlruns/0/0123abcd/metrics/loss", "1 0.5 0\n");
  RemoveUnusedStore(store);
  EXPECT_THAT(Metrics(), ElementsAre("loss=0.5"));
  EXPECT_FALSE(fs::exists(store / "0/4567abcd"));
  // MLflow 3 notes data sets and models of a run in folders of their own.
  ASSERT_TRUE(MakeRun(store, "89ababcd").ok());
  Put("mlruns/0/89ababcd/inputs/d/meta.yaml", "a data set\n");
  RemoveUnusedStore(store);
  EXPECT_TRUE(fs::exists(store / "0/89ababcd"));
  ASSERT_TRUE(MakeStore(outputs_ / "mlruns-rank-1", "").ok());
  ASSERT_TRUE(MakeRun(outputs_ / "mlruns-rank-1", "0123abcd").ok());
  RemoveUnusedStore(outputs_ / "mlruns-rank-1");
  EXPECT_FALSE(fs::exists(outputs_ / "mlruns-rank-1"));
}

TEST_F(FileStoreTest, AStoreThatWasMadeAndNotUsedIsRemoved) {
  const fs::path store = outputs_ / "mlruns";
  ASSERT_TRUE(MakeStore(store, "it's mine").ok());
  EXPECT_THAT(Text("mlruns/0/meta.yaml"), HasSubstr("name: 'it''s mine'\n"));
  Put("mlruns/7/meta.yaml", "name: another, by set_experiment\n");
  fs::create_directory(store / ".trash");
  RemoveUnusedStore(store);
  EXPECT_FALSE(fs::exists(store));
  RemoveUnusedStore(store);
}

TEST_F(FileStoreTest, AStoreInWhichAnythingLiesStays) {
  Put("mlruns/0/meta.yaml", "mine\n");
  ASSERT_TRUE(MakeStore(outputs_ / "mlruns", "x").ok());
  EXPECT_EQ(Text("mlruns/0/meta.yaml"), "mine\n");
  Put("mlruns/0/run/meta.yaml", "");
  Put("mlruns-rank-1/0/tags/a", "");
  Put("mlruns-rank-2/notes.txt", "");
  for (const int rank : {0, 1, 2}) {
    RemoveUnusedStore(outputs_ / StoreName(rank));
    EXPECT_TRUE(fs::exists(outputs_ / StoreName(rank)));
  }
}

TEST_F(FileStoreTest, LinksLeadNowhere) {
  fs::create_directories(folder_.path() / "elsewhere/0/r/metrics");
  std::ofstream(folder_.path() / "elsewhere/0/r/metrics/secret") << "1000 1 0\n";
  fs::create_directories(outputs_);
  fs::create_directory_symlink(folder_.path() / "elsewhere", outputs_ / "mlruns");
  EXPECT_THAT(Metrics(), IsEmpty());
}

TEST_F(FileStoreTest, AMovedStoreHasItsArtifactsInItself) {
  Put("mlruns/0/meta.yaml", "artifact_location: /old place/mlruns/0\nname: Default\n");
  Put("mlruns/0/run/meta.yaml",
      "artifact_uri: file:///old/mlruns/0/run/artifacts\nrun_id: run\nstatus: 3\n");
  Put("mlruns/0/models/m-1/meta.yaml", "artifact_location: /old/mlruns/0/models/m-1/artifacts\n");
  Put("mlruns/1/meta.yaml", "artifact_location: s3://bucket/1\n");
  Put("mlruns/2/meta.yaml", "artifact_location: /mnt/artifacts/mine\n");
  AdoptMovedStores(outputs_);
  const std::string store = (outputs_ / "mlruns").string();
  EXPECT_EQ(Text("mlruns/0/meta.yaml"),
            absl::StrCat("artifact_location: '", store, "/0'\nname: Default\n"));
  EXPECT_EQ(Text("mlruns/0/run/meta.yaml"), absl::StrCat("artifact_uri: '", store,
                                                         "/0/run/artifacts'\nrun_id: run\n"
                                                         "status: 3\n"));
  EXPECT_THAT(Text("mlruns/0/models/m-1/meta.yaml"), HasSubstr(store + "/0/models/m-1/artifacts'"));
  EXPECT_EQ(Text("mlruns/1/meta.yaml"), "artifact_location: s3://bucket/1\n");
  EXPECT_EQ(Text("mlruns/2/meta.yaml"), "artifact_location: /mnt/artifacts/mine\n");
}

TEST_F(FileStoreTest, RegisteredModelsOfAMovedStoreAreInItself) {
  Put("mlruns/0/run/meta.yaml", "artifact_uri: /old/mlruns/0/run/artifacts\n");
  Put("mlruns/0/models/m-1/meta.yaml", "artifact_location: /old/mlruns/0/models/m-1/artifacts\n");
  // MLflow 2 and MLflow 3 write it so.
  Put("mlruns/models/mine/version-1/meta.yaml",
      "name: mine\nsource: /old/mlruns/0/run/artifacts/model\n"
      "storage_location: file:///old/mlruns/0/run/artifacts/model\nversion: 1\n");
  Put("mlruns/models/mine/version-2/meta.yaml",
      "source: models:/m-1\nstorage_location: /old/mlruns/0/models/m-1/artifacts\n");
  const std::string elsewhere =
      "source: s3://bucket/0/run/artifacts/model\n"
      "storage_location: /old/mlruns/0/another/artifacts/model\n";
  Put("mlruns/models/other/version-1/meta.yaml", elsewhere);
  const std::string outside = "source: /old/mlruns/0/run/artifacts/../../../../secret\n";
  Put("mlruns/models/other/version-2/meta.yaml", outside);
  AdoptMovedStores(outputs_);
  const std::string store = (outputs_ / "mlruns").string();
  EXPECT_EQ(Text("mlruns/models/mine/version-1/meta.yaml"),
            absl::StrCat("name: mine\nsource: '", store, "/0/run/artifacts/model'\n",
                         "storage_location: '", store, "/0/run/artifacts/model'\nversion: 1\n"));
  EXPECT_EQ(Text("mlruns/models/mine/version-2/meta.yaml"),
            absl::StrCat("source: models:/m-1\nstorage_location: '", store,
                         "/0/models/m-1/artifacts'\n"));
  EXPECT_EQ(Text("mlruns/models/other/version-1/meta.yaml"), elsewhere);
  EXPECT_EQ(Text("mlruns/models/other/version-2/meta.yaml"), outside);
}

}  // namespace
}  // namespace tutti::mlflow
