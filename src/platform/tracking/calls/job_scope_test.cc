#include "platform/tracking/calls/job_scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::tracking {
namespace {

using nlohmann::json;

class JobScopeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    own_experiment_ =
        store_->BeginJobRun({.id = "own", .experiment = "nets", .name = "n"})->experiment;
    elsewhere_ = *store_->CreateExperiment("elsewhere", "", {});
    beside_ = store_->CreateRun({.experiment = own_experiment_})->info.id;
    begun_ = store_->CreateRun({.experiment = elsewhere_, .job_run = "own"})->info.id;
    foreign_ = store_->CreateRun({.experiment = elsewhere_})->info.id;
  }
  bool May(const std::string& call, const json& request, const char* method = "POST") {
    RequestFields fields(request);
    const absl::Status status = CheckScope(*store_, "own", method, call, fields);
    EXPECT_TRUE(status.ok() || absl::IsPermissionDenied(status)) << status;
    return status.ok();
  }
  bool MayWrite(const std::string& path) {
    return CheckArtifactScope(*store_, "own", "PUT", path).ok();
  }
  bool MayRemove(const std::string& path) {
    return CheckArtifactScope(*store_, "own", "DELETE", path).ok();
  }
  static std::string PathOf(int64_t experiment, const std::string& run) {
    return absl::StrCat(experiment, "/", run, "/artifacts/a/b.txt");
  }

  base::TemporaryDirectory folder_;
  base::SystemClock clock_;
  std::unique_ptr<TrackingStore> store_ =
      *TrackingStore::Open(folder_.path() / "tracking.db", &clock_);
  int64_t own_experiment_ = 0, elsewhere_ = 0;
  std::string beside_, begun_, foreign_;
};

TEST_F(JobScopeTest, ItLogsToItsRunToThoseItBeganAndToThoseOfItsExperiment) {
  for (const std::string call :
       {"runs/log-batch", "runs/set-tag", "runs/update", "runs/log-inputs"}) {
    for (const std::string& run : {std::string("own"), beside_, begun_}) {
      EXPECT_TRUE(May(call, {{"run_id", run}})) << call << " " << run;
    }
    EXPECT_FALSE(May(call, {{"run_id", foreign_}})) << call;
    EXPECT_FALSE(May(call, {{"run_uuid", foreign_}})) << "as older clients say it";
  }
}

TEST_F(JobScopeTest, ItDeletesNoRunButItsOwn) {
  for (const std::string call : {"runs/delete", "runs/restore"}) {
    EXPECT_TRUE(May(call, {{"run_id", begun_}}));
    EXPECT_FALSE(May(call, {{"run_id", beside_}}));
    EXPECT_FALSE(May(call, {{"run_id", foreign_}}));
  }
}

TEST_F(JobScopeTest, ItMakesExperimentsAndNeitherRenamesNorDeletesOne) {
  EXPECT_TRUE(May("experiments/create", {{"name", "new"}}));
  const json own = {{"experiment_id", absl::StrCat(own_experiment_)}};
  for (const std::string call :
       {"experiments/delete", "experiments/update", "experiments/restore"}) {
    EXPECT_FALSE(May(call, own)) << call;
  }
  EXPECT_TRUE(May("experiments/set-experiment-tag", own));
  EXPECT_FALSE(
      May("experiments/set-experiment-tag", {{"experiment_id", absl::StrCat(elsewhere_)}}));
}

TEST_F(JobScopeTest, ItReadsEverything) {
  for (const std::string call : {"runs/search", "experiments/search", "logged-models/search"}) {
    EXPECT_TRUE(May(call, {}));
  }
  EXPECT_TRUE(May("runs/get", {{"run_id", foreign_}}, "GET"));
}

TEST_F(JobScopeTest, ACallThatIsNotKnownToBeHarmlessIsRefused) {
  EXPECT_FALSE(May("something/new", {}));
  EXPECT_TRUE(May("runs/log-batch", json::object())) << "which the call itself refuses";
}

TEST_F(JobScopeTest, ArtifactsAreThoseOfRunsAndModelsThatItMayChange) {
  EXPECT_TRUE(MayWrite(PathOf(own_experiment_, "own")));
  EXPECT_TRUE(MayWrite(PathOf(own_experiment_, beside_)));
  EXPECT_TRUE(MayWrite(PathOf(elsewhere_, begun_)));
  EXPECT_FALSE(MayWrite(PathOf(elsewhere_, foreign_)));
  EXPECT_FALSE(MayWrite(PathOf(elsewhere_, "own"))) << "its run does not lie there";
  EXPECT_FALSE(MayWrite("anything")) << "which is no run's";
  const auto own =
      store_->CreateModel({.experiment = elsewhere_, .name = "m", .source_run = begun_});
  const auto foreign = store_->CreateModel({.experiment = elsewhere_, .name = "m"});
  ASSERT_TRUE(own.ok() && foreign.ok());
  const auto path = [&](const Model& model) {
    return absl::StrCat(elsewhere_, "/models/", model.id, "/artifacts/MLmodel");
  };
  EXPECT_TRUE(MayWrite(path(*own)));
  EXPECT_FALSE(MayWrite(path(*foreign)));
  EXPECT_TRUE(May(absl::StrCat("logged-models/", own->id), {}, "PATCH"));
  EXPECT_FALSE(May(absl::StrCat("logged-models/", foreign->id), {}, "PATCH"));
}

TEST_F(JobScopeTest, ItRemovesWhatIsItsOwnAlone) {
  EXPECT_TRUE(MayRemove(PathOf(own_experiment_, "own")));
  EXPECT_TRUE(MayRemove(PathOf(elsewhere_, begun_)));
  EXPECT_FALSE(MayRemove(PathOf(own_experiment_, beside_)));
  const auto of = [&](const std::string& run) {
    const auto model =
        store_->CreateModel({.experiment = own_experiment_, .name = "m", .source_run = run});
    EXPECT_TRUE(model.ok()) << model.status();
    return absl::StrCat("logged-models/", model->id);
  };
  EXPECT_TRUE(May(of("own"), {}, "DELETE"));
  const std::string beside = of(beside_);
  EXPECT_FALSE(May(beside, {}, "DELETE"));
  EXPECT_FALSE(May(of(""), {}, "DELETE"));
  EXPECT_TRUE(May(beside, {}, "PATCH"));
  EXPECT_TRUE(May(beside + "/tags/k", {}, "DELETE"));
}

TEST_F(JobScopeTest, MetricsAreThoseOfModelsThatItMayChange) {
  const auto own = store_->CreateModel({.experiment = own_experiment_, .name = "m"});
  const auto foreign = store_->CreateModel({.experiment = elsewhere_, .name = "m"});
  ASSERT_TRUE(own.ok() && foreign.ok());
  Batch batch;
  batch.metrics = {{"loss", {}}, {"loss", {}, own->id}, {"loss", {}, "m-unknown"}};
  EXPECT_TRUE(CheckModelsOfBatch(*store_, "own", batch).ok());
  batch.metrics.push_back({"loss", {}, foreign->id});
  EXPECT_TRUE(absl::IsPermissionDenied(CheckModelsOfBatch(*store_, "own", batch)));
}

}  // namespace
}  // namespace tutti::tracking
