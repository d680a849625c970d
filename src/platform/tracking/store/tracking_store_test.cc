// Covers: tracking_store.cc, run_name.cc, platform/tracking/rows/experiment_rows.cc,
// platform/tracking/rows/run_rows.cc, platform/tracking/rows/series_rows.cc,
// platform/tracking/rows/model_rows.cc, platform/tracking/rows/tracking_schema.cc,
// platform/tracking/search/search_query.cc.
#include "platform/tracking/store/tracking_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::tracking {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrackingStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(); }

  void Open(TrackingStoreOptions options = {}) {
    store_.reset();
    auto store = TrackingStore::Open(folder_.path() / "tracking.db", &clock_, std::move(options));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  std::string NewRun(const std::string& name = "", int64_t start = 0, int64_t experiment = 0) {
    const auto run =
        store_->CreateRun({.experiment = experiment, .user = "u", .name = name, .start = start});
    EXPECT_TRUE(run.ok()) << run.status();
    return run.ok() ? run->info.id : "";
  }
  absl::Status Log(const std::string& run, const Batch& batch) {
    const absl::Status fits = CheckBatch(batch);
    if (!fits.ok()) return fits;
    LogRequest request{.run = run, .batch = batch, .status = {}};
    store_->LogTogether({&request});
    return request.status;
  }
  void LogOne(const std::string& run, const std::string& key, Point point) {
    const absl::Status status = Log(run, {.metrics = {{key, point}}, .params = {}, .tags = {}});
    EXPECT_TRUE(status.ok()) << status;
  }
  // Returns the names of runs that a search finds.
  std::vector<std::string> Found(const std::string& filter, const std::string& order = "",
                                 ViewType view = ViewType::kActiveOnly) {
    SearchRequest request{.filter = {}, .order = {}, .view = view, .limit = 100};
    auto parsed = ParseFilter(filter, Subject::kRuns);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    request.filter = *std::move(parsed);
    if (!order.empty()) request.order.push_back(*ParseOrdering(order, Subject::kRuns));
    const auto page = store_->SearchRuns(request, {0, 1});
    EXPECT_TRUE(page.ok()) << page.status();
    std::vector<std::string> names;
    for (const tracking::Run& run : page->runs) names.push_back(run.info.name);
    return names;
  }

  base::TemporaryDirectory folder_;
  base::ManualClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  std::unique_ptr<TrackingStore> store_;
};

TEST_F(TrackingStoreTest, BeginsWithMlflowsDefaultExperiment) {
  const auto experiment = store_->GetExperiment(0);
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->name, "Default");
  EXPECT_EQ(experiment->artifact_location, "mlflow-artifacts:/0");
}

TEST_F(TrackingStoreTest, ExperimentsComeGoAndReturn) {
  const auto id = store_->CreateExperiment("e", "", {{"team", "vision"}});
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(*id, 1);
  EXPECT_EQ(store_->GetExperimentByName("e")->artifact_location, "mlflow-artifacts:/1");
  EXPECT_TRUE(absl::IsAlreadyExists(store_->CreateExperiment("e", "", {}).status()));
  const std::string run = NewRun("r", 0, 1);
  ASSERT_TRUE(store_->DeleteExperiment(1).ok());
  EXPECT_TRUE(store_->GetRunInfo(run)->deleted);
  EXPECT_TRUE(absl::IsNotFound(store_->DeleteExperiment(1)));
  EXPECT_THAT(store_->CreateExperiment("e", "", {}).status().message(), HasSubstr("restore it"));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->CreateRun({.experiment = 1}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->RenameExperiment(1, "f")));
  ASSERT_TRUE(store_->RestoreExperiment(1).ok());
  EXPECT_FALSE(store_->GetRunInfo(run)->deleted);
  ASSERT_TRUE(store_->RenameExperiment(1, "f").ok());
  EXPECT_EQ(store_->GetExperiment(1)->name, "f");
  EXPECT_TRUE(absl::IsAlreadyExists(store_->RenameExperiment(1, "Default")));
  ASSERT_TRUE(store_->SetExperimentTag(1, {"team", "audio"}).ok());
  EXPECT_THAT(store_->GetExperiment(1)->tags, ElementsAre(KeyValue{"team", "audio"}));
  ASSERT_TRUE(store_->DeleteExperimentTag(1, "team").ok());
  EXPECT_TRUE(absl::IsNotFound(store_->DeleteExperimentTag(1, "team")));
  EXPECT_TRUE(absl::IsNotFound(store_->GetExperiment(9).status()));
}

TEST_F(TrackingStoreTest, ARunHasTheNameThatItIsGivenOrOneOfItsOwn) {
  const auto named = store_->CreateRun({.tags = {{"mlflow.runName", "by tag"}}});
  EXPECT_EQ(named->info.name, "by tag");
  EXPECT_THAT(named->tags, ElementsAre(KeyValue{"mlflow.runName", "by tag"}));
  EXPECT_FALSE(store_->CreateRun({})->info.name.empty());
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_->CreateRun({.name = "a", .tags = {{"mlflow.runName", "b"}}}).status()));
  ASSERT_TRUE(store_->UpdateRun(named->info.id, {.name = "new"}).ok());
  EXPECT_THAT(store_->GetRun(named->info.id)->tags, ElementsAre(KeyValue{"mlflow.runName", "new"}));
  ASSERT_TRUE(
      Log(named->info.id, {.metrics = {}, .params = {}, .tags = {{"mlflow.runName", "t"}}}).ok());
  EXPECT_EQ(store_->GetRunInfo(named->info.id)->name, "t");
  EXPECT_EQ(named->info.artifact_uri,
            absl::StrCat("mlflow-artifacts:/0/", named->info.id, "/artifacts"));
}

TEST_F(TrackingStoreTest, AParamKeepsItsValue) {
  const std::string run = NewRun();
  const Batch batch{.metrics = {}, .params = {{"lr", "0.1"}}, .tags = {}};
  ASSERT_TRUE(Log(run, batch).ok());
  EXPECT_TRUE(Log(run, batch).ok());  // whose answer was lost
  const absl::Status other =
      Log(run, {.metrics = {{"m", {}}}, .params = {{"lr", "0.2"}}, .tags = {}});
  EXPECT_TRUE(absl::IsInvalidArgument(other));
  EXPECT_THAT(other.message(), HasSubstr("already logged with value='0.1'"));
  EXPECT_THAT(store_->GetRun(run)->metrics, IsEmpty());  // nothing of the batch
}

TEST_F(TrackingStoreTest, ADeletedRunTakesNothingUntilItReturns) {
  const std::string run = NewRun();
  ASSERT_TRUE(store_->DeleteRun(run).ok());
  const Batch batch{.metrics = {{"m", {}}}, .params = {}, .tags = {}};
  EXPECT_TRUE(absl::IsInvalidArgument(Log(run, batch)));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->UpdateRun(run, {}).status()));
  ASSERT_TRUE(store_->RestoreRun(run).ok());
  EXPECT_TRUE(Log(run, batch).ok());
  EXPECT_TRUE(absl::IsNotFound(Log("none", batch)));
}

TEST_F(TrackingStoreTest, TheLastMetricIsThatOfTheHighestStep) {
  const std::string run = NewRun();
  LogOne(run, "m", {.step = 5, .time = 10, .value = 1});
  LogOne(run, "m", {.step = 4, .time = 20, .value = 2});
  EXPECT_EQ(store_->GetRun(run)->metrics[0].point.value, 1);
  LogOne(run, "m", {.step = 5, .time = 10, .value = 3});
  LogOne(run, "m", {.step = 5, .time = 10, .value = NAN});
  EXPECT_EQ(store_->GetRun(run)->metrics[0].point.value, 3);
  LogOne(run, "m", {.step = -3, .time = 10, .value = -HUGE_VAL});
  const auto history = store_->History(run, "m", std::nullopt, 10);
  ASSERT_EQ(history->size(), 5u);
  EXPECT_EQ(history->front().value, -HUGE_VAL);
  EXPECT_TRUE(std::any_of(history->begin(), history->end(),
                          [](const Point& point) { return std::isnan(point.value); }));
}

TEST_F(TrackingStoreTest, ARepeatedCallAddsNothing) {
  const std::string run = NewRun();
  for (int i = 0; i < 3; ++i) {
    LogOne(run, "m", {.step = 1, .time = 10, .value = 0.5});
    LogOne(run, "m", {.step = 2, .time = 10, .value = NAN});
  }
  EXPECT_EQ(store_->History(run, "m", std::nullopt, 10)->size(), 2u);
  EXPECT_EQ(store_->Sample(run, "m", {}, 10)->size(), 2u);
}

TEST_F(TrackingStoreTest, AHistoryIsReadInPages) {
  const std::string run = NewRun();
  for (int i = 0; i < 7; ++i) LogOne(run, "m", {.step = i / 2, .time = 1, .value = i * 1.0});
  std::vector<double> values;
  std::optional<Point> after;
  while (true) {
    const auto page = store_->History(run, "m", after, 3);
    ASSERT_TRUE(page.ok()) << page.status();
    if (page->empty()) break;
    for (const Point& point : *page) values.push_back(point.value);
    after = page->back();
  }
  EXPECT_EQ(values.size(), 7u);
  EXPECT_THAT(*store_->History(run, "none", std::nullopt, 3), IsEmpty());
  EXPECT_TRUE(absl::IsNotFound(store_->History("none", "m", std::nullopt, 3).status()));
}

TEST_F(TrackingStoreTest, SearchesByMetricsParamsTagsAndAttributes) {
  const std::string a = NewRun("a", 1), b = NewRun("b", 2), c = NewRun("c", 3);
  LogOne(a, "loss", {.value = 0.1});
  LogOne(b, "loss", {.value = 0.9});
  LogOne(c, "loss", {.value = NAN});
  const auto put = [&](const std::string& run, const char* value) {
    ASSERT_TRUE(Log(run, {.metrics = {}, .params = {{"net", value}}, .tags = {{"t", value}}}).ok());
  };
  put(a, "ResNet_50");
  put(b, "resnet*50");
  EXPECT_THAT(Found(""), ElementsAre("c", "b", "a"));  // the newest first
  EXPECT_THAT(Found("metrics.loss < 0.5"), ElementsAre("a"));
  EXPECT_THAT(Found("metrics.loss != 0.1"), ElementsAre("c", "b"));
  EXPECT_THAT(Found("params.net LIKE 'Res%'"), ElementsAre("a"));
  EXPECT_THAT(Found("params.net ILIKE 'res%'"), ElementsAre("b", "a"));
  EXPECT_THAT(Found("params.net LIKE '%*50'"), ElementsAre("b"));
  EXPECT_THAT(Found("tags.t != 'ResNet_50'"), ElementsAre("b"));
  EXPECT_THAT(Found("tags.t IS NULL"), ElementsAre("c"));
  EXPECT_THAT(Found("params.net IS NOT NULL"), ElementsAre("b", "a"));
  EXPECT_THAT(Found("start_time > 1 and status = 'RUNNING'"), ElementsAre("c", "b"));
  EXPECT_THAT(Found(absl::StrCat("run_id IN ('", a, "', '", c, "')")), ElementsAre("c", "a"));
  EXPECT_THAT(Found(absl::StrCat("run_id NOT IN ('", a, "')")), ElementsAre("c", "b"));
  EXPECT_THAT(Found("run_name = 'b'"), ElementsAre("b"));
  EXPECT_THAT(Found("", "metrics.loss DESC"), ElementsAre("b", "a", "c"));
  EXPECT_THAT(Found("", "params.net"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(Found("", "start_time"), ElementsAre("a", "b", "c"));
  ASSERT_TRUE(store_->DeleteRun(b).ok());
  EXPECT_THAT(Found("", "", ViewType::kDeletedOnly), ElementsAre("b"));
  EXPECT_THAT(Found("", "", ViewType::kAll), ElementsAre("c", "b", "a"));
}

TEST_F(TrackingStoreTest, SearchesByDataSets) {
  const std::string run = NewRun("with");
  NewRun("without");
  const DatasetInput input{.dataset = {.name = "cifar", .digest = "d1"},
                           .tags = {{"mlflow.data.context", "training"}}};
  ASSERT_TRUE(store_->LogInputs(run, {input, input}, {}).ok());
  EXPECT_EQ(store_->GetRun(run)->inputs.size(), 1u);
  EXPECT_THAT(Found("dataset.name = 'cifar'"), ElementsAre("with"));
  EXPECT_THAT(Found("dataset.context IN ('training', 'x')"), ElementsAre("with"));
  EXPECT_THAT(Found("dataset.digest = 'd2'"), IsEmpty());
}

TEST_F(TrackingStoreTest, PagesGoOnWhereTheLastOneEnded) {
  for (int i = 0; i < 5; ++i) NewRun(absl::StrCat("r", i), i);
  SearchRequest request{.filter = {}, .order = {}, .limit = 2};
  std::string names;
  for (int pages = 1;; ++pages) {
    const auto page = store_->SearchRuns(request, {0});
    ASSERT_TRUE(page.ok()) << page.status();
    for (const tracking::Run& run : page->runs) names += run.info.name;
    request.offset += static_cast<int64_t>(page->runs.size());
    if (page->more) continue;
    EXPECT_EQ(pages, 3);
    break;
  }
  EXPECT_EQ(names, "r4r3r2r1r0");
}

TEST_F(TrackingStoreTest, ASearchThatTakesTooLongIsEnded) {
  const std::string run = NewRun("r");
  Batch batch;
  for (size_t i = 0; i < kMostTagsOfBatch; ++i) batch.tags.push_back({absl::StrCat("t", i), "x"});
  ASSERT_TRUE(Log(run, batch).ok());
  Open({.search_limit = absl::ZeroDuration()});
  const SearchRequest request{.filter = {}, .order = {}, .limit = 10};
  const auto page = store_->SearchRuns(request, {0});
  EXPECT_TRUE(absl::IsInvalidArgument(page.status())) << page.status();
  EXPECT_THAT(std::string(page.status().message()), HasSubstr("narrow its filter"));
  EXPECT_EQ(store_->GetRun(run)->tags.size(), kMostTagsOfBatch + 1) << "other reads have no limit";
}

TEST_F(TrackingStoreTest, ARunsOwnTextsHaveLimits) {
  const std::string run = NewRun("r");
  const std::string name(kMostRunNameLength + 1, 'n');
  const auto refused = [&](const RunCreation& creation) {
    return absl::IsInvalidArgument(store_->CreateRun(creation).status());
  };
  EXPECT_TRUE(refused({.user = std::string(kMostUserLength + 1, 'u')}));
  EXPECT_TRUE(refused({.name = name}));
  EXPECT_TRUE(refused({.tags = {{"mlflow.runName", name}}}));
  RunChange change;
  change.name = name;
  EXPECT_TRUE(absl::IsInvalidArgument(store_->UpdateRun(run, change).status()));
  const Batch renaming{.metrics = {}, .params = {}, .tags = {{"mlflow.runName", name}}};
  EXPECT_TRUE(absl::IsInvalidArgument(Log(run, renaming)));
  EXPECT_THAT(Found(""), ElementsAre("r"));
}

TEST_F(TrackingStoreTest, WhatARunUsesAndMakesHasLimits) {
  const std::string run = NewRun("r");
  std::vector<ModelOfRun> models;
  for (int64_t i = 0; i < kMostInputsOfRun; ++i) models.push_back({absl::StrCat("m-", i), 1});
  EXPECT_TRUE(store_->LogOutputs(run, models).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(store_->LogOutputs(run, {{"m-more", 1}})));
  EXPECT_TRUE(store_->LogInputs(run, {}, models).ok());
  const std::vector<ModelOfRun> long_id = {{std::string(kMostIdLength + 1, 'm'), 1}};
  EXPECT_TRUE(absl::IsInvalidArgument(store_->LogOutputs(NewRun(), long_id)));
  EXPECT_EQ(store_->GetRun(run)->model_outputs.size(), models.size());
  const Model model{.type = std::string(kMostNameLength + 1, 't')};
  EXPECT_TRUE(absl::IsInvalidArgument(store_->CreateModel(model).status()));
}

TEST_F(TrackingStoreTest, DataSetsOfARunHaveLimits) {
  const std::string run = NewRun("r");
  DatasetInput input{.dataset = {.name = "d", .digest = "1"}, .tags = {{"kkk/../", "v"}}};
  EXPECT_TRUE(absl::IsInvalidArgument(store_->LogInputs(run, {input}, {})));
  input.tags = {{"k", std::string(kMostInputTagLength + 1, 'v')}};
  EXPECT_TRUE(absl::IsInvalidArgument(store_->LogInputs(run, {input}, {})));
  input = {.dataset = {.name = "d", .profile = std::string(1 << 20, 'p')}, .tags = {}};
  input.dataset.profile.pop_back();
  absl::Status status;
  int taken = 0;
  for (; taken < 100 && status.ok(); ++taken) {
    input.dataset.digest = absl::StrCat(taken);
    status = store_->LogInputs(run, {input}, {});
  }
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(taken, 16);
}

TEST_F(TrackingStoreTest, APageOfLargeRunsEndsEarly) {
  const std::string large(kMostTagLength, 'x');
  for (int i = 0; i < 13; ++i) {
    const std::string run = NewRun(absl::StrCat("r", i), i);
    Batch batch;
    for (size_t tag = 0; tag < kMostTagsOfBatch; ++tag) {
      batch.tags.push_back({absl::StrCat("t", tag), large});
    }
    ASSERT_TRUE(Log(run, batch).ok());
  }
  const auto page = store_->SearchRuns({.filter = {}, .order = {}, .limit = 1000}, {0});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(page->more);
  EXPECT_THAT(page->runs.size(), ::testing::AllOf(::testing::Ge(1u), ::testing::Le(12u)));
}

TEST_F(TrackingStoreTest, ExperimentsAreSearchedToo) {
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(store_->CreateExperiment("vision", "", {{"team", "a"}}).ok());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(store_->CreateExperiment("audio", "s3://bucket/x", {}).ok());
  const auto names = [&](const char* filter, const char* order = "") {
    SearchRequest request{
        .filter = *ParseFilter(filter, Subject::kExperiments), .order = {}, .limit = 10};
    if (*order != '\0') request.order.push_back(*ParseOrdering(order, Subject::kExperiments));
    std::vector<std::string> found;
    const auto page = store_->SearchExperiments(request);
    EXPECT_TRUE(page.ok()) << page.status();
    for (const auto& experiment : page->experiments) {
      if (experiment.id != 0) found.push_back(experiment.name);
    }
    return found;
  };
  EXPECT_THAT(names(""), ElementsAre("audio", "vision"));
  EXPECT_THAT(names("", "name DESC"), ElementsAre("vision", "audio"));
  EXPECT_THAT(names("tags.team = 'a'"), ElementsAre("vision"));
  EXPECT_THAT(names("name ILIKE 'AUD%'"), ElementsAre("audio"));
  EXPECT_EQ(store_->CreateRun({.experiment = 2})->info.artifact_uri.rfind("s3://bucket/x/", 0), 0u);
}

TEST_F(TrackingStoreTest, ModelsAreAddedToTheRunsTag) {
  const std::string run = NewRun();
  ASSERT_TRUE(store_->LogModel(run, R"({"artifact_path": "m"})").ok());
  ASSERT_TRUE(store_->LogModel(run, R"({"artifact_path": "n"})").ok());
  EXPECT_THAT(store_->GetRun(run)->tags[0].value,
              R"([{"artifact_path": "m"},{"artifact_path": "n"}])");
  EXPECT_TRUE(absl::IsInvalidArgument(
      store_->LogModel(run, absl::StrCat("{\"x\": \"", std::string(kMostTagLength, 'y'), "\"}"))));
}

TEST_F(TrackingStoreTest, AFullDiskTakesNothingAndIsTold) {
  bool is_full = false;
  Open({.check_room = [&is_full] {
    return is_full ? absl::ResourceExhaustedError("the disk is full") : absl::OkStatus();
  }});
  const std::string run = NewRun();
  is_full = true;
  const Batch batch{.metrics = {{"m", {}}}, .params = {}, .tags = {}};
  EXPECT_TRUE(absl::IsResourceExhausted(Log(run, batch)));
  EXPECT_THAT(store_->GetRun(run)->metrics, IsEmpty());
  is_full = false;
  EXPECT_TRUE(Log(run, batch).ok());
}

TEST_F(TrackingStoreTest, WhatManyLogAtOnceIsAllThereAfterItIsOpenedAnew) {
  constexpr int kThreads = 6, kCalls = 20;
  const std::string run = NewRun();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int64_t call = 0; call < kCalls; ++call) {
        Batch batch;
        for (int64_t i = 0; i < 50; ++i) {
          batch.metrics.push_back({absl::StrCat("m", i % 5), {call * 10 + i / 5, thread, 1}});
        }
        EXPECT_TRUE(Log(run, batch).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Open();
  for (int key = 0; key < 5; ++key) {
    EXPECT_EQ(store_->History(run, absl::StrCat("m", key), std::nullopt, 10'000)->size(),
              size_t{kThreads * kCalls * 10});
  }
}

}  // namespace
}  // namespace tutti::tracking
