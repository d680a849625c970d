#include "platform/service/models/reported_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Line(const std::string& name, const std::string& path, json more = json::object()) {
  more.update({{"event", "model"}, {"name", name}, {"path", path}, {"time", 1.5}});
  return more.dump() + "\n";
}

class ReportedModelsTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& bytes) {
    const fs::path file = files_.FolderOf("j") / path;
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, bytes).ok());
  }
  void WriteLines(int rank, const std::string& lines) {
    Write(absl::StrCat("logs/rank-", rank, ".metrics"), lines);
  }
  ReportedModels Read() {
    auto read = ReadReportedModels(files_.FolderOf("j") / "logs");
    EXPECT_TRUE(read.ok()) << read.status();
    return read.value_or(ReportedModels());
  }
  // "name path", in their order.
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const ReportedModel& model : Read().models) {
      names.push_back(absl::StrCat(model.creation.name, " ", model.path));
    }
    return names;
  }
  std::vector<std::string> Register(std::function<void(const char*)> on_step = {}) {
    RegisteredModels models(home_.path(), &clock_, std::move(on_step));
    return RegisterReportedModels(files_, models, job_);
  }
  std::vector<ModelVersion> VersionsOf(const std::string& name) {
    RegisteredModels models(home_.path(), &clock_);
    auto page = models.ListVersions(name, /*before=*/0, /*limit=*/1000);
    return page.ok() ? page->versions : std::vector<ModelVersion>();
  }

  const base::TemporaryDirectory home_;
  const JobFiles files_{home_.path() / "jobs"};
  base::ManualClock clock_{absl::FromUnixSeconds(1'800'000'000)};
  store::Job job_{.id = "j", .sequence = 7};
};

TEST_F(ReportedModelsTest, RegistersWhatAllRanksSayOnceWithTheJobsLineage) {
  Write("outputs/net/w", "weights");
  Write("outputs/more", "more");
  const json said = {
      {"tags", {{"team", "ours"}}}, {"properties", {{"p", "1"}}}, {"description", "d"}};
  const std::string step = "{\"event\": \"step\", \"step\": 1, \"model\": \"resnet\"}\nnoise\n";
  WriteLines(0, step + Line("net", "outputs/net", said) + step);
  WriteLines(1, Line("net", "outputs/net/") + Line("more", "outputs/more"));
  EXPECT_THAT(Register(), IsEmpty());
  ASSERT_THAT(VersionsOf("net"), SizeIs(1));
  const ModelVersion version = VersionsOf("net")[0];
  EXPECT_EQ(version.tags.at("team"), "ours");
  EXPECT_EQ(version.properties.at("p"), "1");
  EXPECT_EQ(version.description, "d");
  EXPECT_EQ(version.type, "custom_model");
  EXPECT_EQ(json::parse(version.lineage)["job"], "j");
  EXPECT_EQ(json::parse(version.lineage)["path"], "outputs/net");
  EXPECT_EQ(VersionsOf("more")[0].file, "more");
}

TEST_F(ReportedModelsTest, AServiceThatIsKilledInBetweenRegistersNoneTwice) {
  for (int die_at = 1;; ++die_at) {
    Write("outputs/net", "weights");
    Write("outputs/other", "weights");
    WriteLines(0, Line("net", "outputs/net") + Line("net", "outputs/other") +
                      Line("alone", "outputs/net"));
    const pid_t child = ::fork();
    if (child == 0) {
      int steps = 0;
      Register([&](const char*) {
        if (++steps == die_at) ::_exit(1);
      });
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_THAT(Register(), IsEmpty());
    EXPECT_THAT(Register(), IsEmpty());
    EXPECT_THAT(VersionsOf("net"), SizeIs(2)) << "died at step " << die_at;
    EXPECT_THAT(VersionsOf("alone"), SizeIs(1));
    EXPECT_EQ(VersionsOf("net")[0].file, "other") << "the last one is the newest";
    if (WEXITSTATUS(status) == 0) break;
    fs::remove_all(home_.path() / "models");
    fs::remove(home_.path() / "models.db");
  }
}

TEST_F(ReportedModelsTest, ALaterJobOfTheSameNameRegistersItsOwn) {
  Write("outputs/net", "weights");
  WriteLines(0, Line("net", "outputs/net"));
  EXPECT_THAT(Register(), IsEmpty());
  job_.sequence = 8;
  EXPECT_THAT(Register(), IsEmpty());
  EXPECT_THAT(VersionsOf("net"), SizeIs(2));
}

TEST_F(ReportedModelsTest, OfEqualCallsTheLastOneCounts) {
  WriteLines(0, Line("best", "outputs/b", {{"tags", {{"epoch", "1"}}}}) + Line("net", "outputs/a") +
                    Line("best", "outputs/b", {{"tags", {{"epoch", "2"}}}}));
  WriteLines(1, Line("best", "outputs/b", {{"tags", {{"epoch", "3"}}}}) + Line("one", "outputs/1"));
  EXPECT_THAT(Names(), ElementsAre("net outputs/a", "best outputs/b", "one outputs/1"));
  EXPECT_EQ(Read().models[1].creation.tags.at("epoch"), "2");
}

TEST_F(ReportedModelsTest, WhatCannotBeRegisteredIsSaidAndTheRestIs) {
  Write("outputs/net", "weights");
  WriteLines(0, Line("net", "outputs/none") + Line("a b", "outputs/net") +
                    Line("net", "../secrets") + Line("net", "outputs/net") +
                    Line("net", "outputs/net", {{"type", "mlflow_model"}}) +
                    Line("net", "logs/rank-0.metrics") + Line("net", "outputs/net", {{"tags", 1}}));
  const std::vector<std::string> notes = Register();
  ASSERT_THAT(notes, SizeIs(5));
  EXPECT_EQ(
      notes[0],
      "model net is not registered: job j has no outputs/none, but outputs/net (by hand: tutti "
      "model register --from-job j --path outputs/none --name net)");
  EXPECT_THAT(notes[1], HasSubstr("model a b is not registered: name"));
  EXPECT_THAT(notes[2], HasSubstr("model net is not registered: "));
  EXPECT_EQ(notes[3], "and 2 more models are not registered");
  EXPECT_EQ(notes[4],
            "a line of its metrics file that registers a model is wrong: tags must be an object");
  EXPECT_THAT(VersionsOf("net"), IsEmpty()) << "the last line of that path wants an mlflow_model";
}

TEST_F(ReportedModelsTest, AScriptThatLoopsRegistersABoundedNumber) {
  Write("outputs/net", "weights");
  std::string lines;
  for (int i = 0; i < 250; ++i) lines += Line(absl::StrCat("net", i), "outputs/net");
  WriteLines(0, lines);
  WriteLines(1, lines + Line("late", "outputs/net"));
  EXPECT_THAT(Read().models, SizeIs(kMostReportedModels));
  EXPECT_THAT(Register(), ElementsAre(HasSubstr("a job registers at most 100 models: 15")));
}

TEST_F(ReportedModelsTest, AJobWithoutSuchLinesRegistersNothing) {
  EXPECT_THAT(Register(), IsEmpty());
  WriteLines(
      0, "{\"event\": \"start\", \"model\": \"resnet18\"}\n{\"loss\": 1}\n\"model\"\n[\"model\"]");
  EXPECT_THAT(Register(), IsEmpty());
  EXPECT_FALSE(fs::exists(home_.path() / "models.db"));
}

class ModelsOfJobs : public ServiceTest {
 protected:
  // Runs a job that reports a model at that path, to its end.
  void Run(const std::string& path) {
    world_.launchers().metrics = Line("net", path);
    ASSERT_TRUE(world_.Submit().ok());
    ASSERT_TRUE(world_.StepUntilOver("j")) << world_.Reason("j");
  }
  size_t Count() {
    const auto page = service().models().ListVersions("net", /*before=*/0, /*limit=*/10);
    return page.ok() ? page->versions.size() : 0;
  }
};

TEST_F(ModelsOfJobs, AreThereWhenTheJobIsCompleted) {
  world_.launchers().metrics = Line("net", "outputs/from-n1");
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", store::JobState::kFinalizing));
  EXPECT_EQ(Count(), 0u);
  ASSERT_TRUE(world_.StepUntilState("j", store::JobState::kCompleted));
  EXPECT_EQ(Count(), 1u);
  EXPECT_EQ(world_.Reason("j"), "all 2 processes ended with exit code 0");
}

TEST_F(ModelsOfJobs, OneThatCannotBeRegisteredIsANoteOfACompletedJob) {
  Run("outputs/none");
  EXPECT_EQ(world_.State("j"), store::JobState::kCompleted);
  EXPECT_THAT(
      world_.Reason("j"),
      HasSubstr("all 2 processes ended with exit code 0; note: model net is not registered: "
                "job j has no outputs/none, but outputs/from-n1"));
  EXPECT_EQ(Count(), 0u);
}

TEST_F(ModelsOfJobs, AJobThatFailedRegistersNone) {
  world_.launchers().script() = {{0, {{"code", 3}}}, {1, {}}};
  Run("outputs/from-n1");
  EXPECT_EQ(world_.State("j"), store::JobState::kFailed);
  EXPECT_EQ(Count(), 0u);
}

TEST_F(ModelsOfJobs, AJobThatIsCanceledRegistersNone) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  world_.launchers().metrics = Line("net", "outputs/from-n1");
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", store::JobState::kRunning));
  ASSERT_TRUE(service().Cancel("j").ok());
  ASSERT_TRUE(world_.StepUntilOver("j"));
  EXPECT_EQ(world_.State("j"), store::JobState::kCanceled);
  EXPECT_EQ(Count(), 0u);
}

}  // namespace
}  // namespace tutti::service
