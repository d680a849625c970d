// Covers: mlflow_store.cc.
#include "runtime/train/report/mlflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_replace.h"
#include "base/file.h"

namespace tutti::train {
namespace {

using testing::AllOf;
using testing::HasSubstr;
namespace fs = std::filesystem;

std::string Text(const fs::path& path) { return base::ReadFile(path).value_or("(no file)"); }

// Returns a key's line in a meta.yaml; "" if it has none.
std::string Line(const fs::path& meta, const std::string& key) {
  const std::string text = "\n" + Text(meta);
  const size_t at = text.find("\n" + key + ": ");
  return at == text.npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
}

class Mlflow : public testing::Test {
 protected:
  Mlflow() {
    recipe_.data = "data";
    recipe_.output = folder_.path() / "outputs";
    EXPECT_TRUE(base::MakeDirectories(recipe_.output).ok());
    target_.store = store_;
  }

  MlflowRun Open() {
    auto run = MlflowRun::Open(target_, recipe_, clock_);
    EXPECT_TRUE(run.ok()) << run.status();
    return *std::move(run);
  }
  std::string WhyNot() {
    const auto run = MlflowRun::Open(target_, recipe_, clock_);
    return run.ok() ? "it was opened" : std::string(run.status().message());
  }

  const base::TemporaryDirectory folder_;
  const fs::path store_ = folder_.path() / "ml runs";
  base::ManualClock clock_{absl::FromUnixMillis(1'700'000'000'123)};
  Recipe recipe_;
  MlflowTarget target_;
};

// Keys, values and files as MLflow 2.22.5 wrote them for a run of its own, but for names and times.
TEST_F(Mlflow, AStoreIsLaidOutAsMlflowDoesIt) {
  ::setenv("LOGNAME", "ada", 1);
  const MlflowRun run = Open();
  const fs::path experiment = store_ / "0";
  const std::string id = run.folder().filename(), artifacts = experiment / id / "artifacts";
  EXPECT_EQ(run.folder().parent_path(), experiment);
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(Text(experiment / "meta.yaml"),
            "artifact_location: \"" + experiment.string() +
                "\"\ncreation_time: 1700000000123\nexperiment_id: '0'\n"
                "last_update_time: 1700000000123\nlifecycle_stage: active\nname: \"Default\"\n");
  EXPECT_EQ(Text(run.folder() / "meta.yaml"),
            "artifact_uri: \"" + artifacts + "\"\nend_time: null\nentry_point_name: ''\n" +
                "experiment_id: '0'\nlifecycle_stage: active\nrun_id: '" + id +
                "'\nrun_name: \"resnet20-" + id.substr(0, 8) + "\"\nrun_uuid: '" + id +
                "'\nsource_name: ''\nsource_type: 4\nsource_version: ''\n"
                "start_time: 1700000000123\nstatus: 1\ntags: []\nuser_id: \"ada\"\n");
  const fs::path tags = run.folder() / "tags";
  EXPECT_EQ(Text(tags / "mlflow.runName"), "resnet20-" + id.substr(0, 8));
  EXPECT_EQ(Text(tags / "mlflow.user"), "ada");
  EXPECT_EQ(Text(tags / "mlflow.source.name"), "tutti-train");
  EXPECT_EQ(Text(tags / "mlflow.source.type"), "LOCAL");
  EXPECT_TRUE(fs::is_directory(artifacts));
  EXPECT_TRUE(fs::is_directory(store_ / ".trash")) << "a reader would make it";
}

TEST_F(Mlflow, EveryFieldOfTheRecipeIsAParam) {
  recipe_.milestones = {30, 60};
  const MlflowRun run = Open();
  std::set<std::string> written, fields;
  for (const auto& entry : fs::directory_iterator(run.folder() / "params")) {
    written.insert(entry.path().filename());
  }
  for (const Field& field : FieldsOf(recipe_)) {
    fields.insert(std::string(field.name));
    EXPECT_EQ(Text(run.folder() / "params" / std::string(field.name)), FieldText(field));
    EXPECT_EQ(MlflowName(field.name), field.name);
  }
  EXPECT_EQ(written, fields);
}

TEST_F(Mlflow, AMetricIsAFileWithALineForEachValue) {
  MlflowRun run = Open();
  ASSERT_TRUE(run.Write(3, std::vector<Scalar>{{"loss", 2.5}, {"step/data", 1.0 / 3}}).ok());
  clock_.Advance(absl::Seconds(2));
  ASSERT_TRUE(run.Write(6, std::vector<Scalar>{{"loss", 1e-30}, {"a?b", -7}}).ok());
  const fs::path metrics = run.folder() / "metrics";
  EXPECT_EQ(Text(metrics / "loss"), "1700000000123 2.5 3\n1700000002123 1e-30 6\n");
  EXPECT_EQ(Text(metrics / "step" / "data"), "1700000000123 0.3333333333333333 3\n");
  EXPECT_EQ(Text(metrics / "a_b"), "1700000002123 -7 6\n");
}

TEST_F(Mlflow, TheEndIsAStatusAndATimeAndLeavesTheRestAsItWas) {
  for (const auto& [status, number] : {std::pair{MlflowStatus::kFinished, "3"},
                                       {MlflowStatus::kFailed, "4"},
                                       {MlflowStatus::kKilled, "5"}}) {
    MlflowRun run = Open();
    const fs::path meta = run.folder() / "meta.yaml";
    // As the client has it where it breaks a long name, and a deleted run that was restored.
    std::string text = absl::StrReplaceAll(
        Text(meta), {{"user_id:", "run_note: 'a long\n\n  status: line'\nuser_id:"}});
    ASSERT_TRUE(base::ReplaceFile(meta, text).ok());
    ASSERT_TRUE(run.End(status).ok());
    text = absl::StrReplaceAll(text, {{"end_time: null\n", ""}, {"status: 1\n", ""}});
    EXPECT_EQ(Text(meta), text + "status: " + number + "\nend_time: 1700000000123\n");
  }
}

TEST_F(Mlflow, ARunThatResumesGoesOnInItsOwn) {
  MlflowRun first = Open();
  ASSERT_TRUE(first.Write(1, std::vector<Scalar>{{"loss", 2}}).ok());
  ASSERT_TRUE(first.End(MlflowStatus::kKilled).ok());
  recipe_.resume = "latest";
  recipe_.epochs = 7;
  MlflowRun second = Open();
  EXPECT_EQ(second.folder(), first.folder());
  const fs::path meta = second.folder() / "meta.yaml";
  EXPECT_EQ(Line(meta, "status") + Line(meta, "end_time"), "status: 1end_time: null");
  ASSERT_TRUE(second.Write(2, std::vector<Scalar>{{"loss", 1}}).ok());
  EXPECT_EQ(Text(second.folder() / "metrics" / "loss"), "1700000000123 2 1\n1700000000123 1 2\n");
  EXPECT_EQ(Text(second.folder() / "params" / "epochs"), "90") << "params do not change";
}

TEST_F(Mlflow, ARunGoesOnInNoOther) {
  const fs::path first = Open().folder();
  const fs::path second = Open().folder();
  EXPECT_NE(second, first) << "it does not resume";
  recipe_.resume = "latest";
  EXPECT_EQ(Open().folder(), second);
  ASSERT_TRUE(base::ReplaceFile(second / "meta.yaml", "lifecycle_stage: deleted\n").ok());
  const fs::path third = Open().folder();
  EXPECT_NE(third, second) << "which was deleted";
  target_.store = folder_.path() / "another";
  EXPECT_EQ(Open().folder().parent_path(), target_.store / "0") << "the store has it not";
  ASSERT_TRUE(base::ReplaceFile(folder_.path() / "outputs" / "mlflow-run", "../0").ok());
  Open();
}

TEST_F(Mlflow, ARunThatTheEnvironmentNamesIsTaken) {
  const fs::path other = Open().folder();
  Open();
  target_.run_id = other.filename();
  EXPECT_EQ(Open().folder(), other);
  target_.run_id = "0123";
  EXPECT_THAT(WhyNot(), AllOf(HasSubstr("MLFLOW_RUN_ID"), HasSubstr(store_.string()),
                              HasSubstr("no run 0123")));
}

TEST_F(Mlflow, AnExperimentIsFoundByItsNameOrMade) {
  target_.experiment_name = "cats: \"and\" dögs";
  const fs::path made = Open().folder().parent_path();
  EXPECT_EQ(made.filename().string().size(), 18u);
  EXPECT_EQ(Line(made / "meta.yaml", "name"), "name: \"cats: \\\"and\\\" dögs\"");
  EXPECT_EQ(Open().folder().parent_path(), made);
  target_.experiment_id = made.filename();
  EXPECT_EQ(Open().folder().parent_path(), made);
  target_.experiment_id = "7";
  EXPECT_THAT(WhyNot(), AllOf(HasSubstr("MLFLOW_EXPERIMENT_ID is 7"), HasSubstr(made.filename())));

  target_.experiment_name.clear();
  EXPECT_THAT(WhyNot(), AllOf(HasSubstr("has no experiment 7"), HasSubstr(store_.string())));
  target_.experiment_id = made.filename();
  EXPECT_EQ(Open().folder().parent_path(), made);

  // The client's own words, and a deleted one.
  ASSERT_TRUE(base::MakeDirectories(store_ / "5").ok());
  ASSERT_TRUE(
      base::ReplaceFile(store_ / "5" / "meta.yaml", "artifact_location: s3://a/5\nname: 'it''s'\n")
          .ok());
  target_.experiment_id.clear();
  target_.experiment_name = "it's";
  const MlflowRun run = Open();
  EXPECT_EQ(run.folder().parent_path(), store_ / "5");
  EXPECT_EQ(Line(run.folder() / "meta.yaml", "artifact_uri"),
            "artifact_uri: \"s3://a/5/" + run.folder().filename().string() + "/artifacts\"");
  fs::rename(store_ / "5", store_ / ".trash" / "5");
  EXPECT_THAT(WhyNot(), AllOf(HasSubstr("\"it's\" was deleted"), HasSubstr(".trash/5")));
}

TEST_F(Mlflow, AFolderThatCannotBeIsNamed) {
  target_.store = "/proc/nowhere";
  EXPECT_THAT(WhyNot(), HasSubstr("/proc/nowhere"));
}

// Other readers than this one fail at a metric without a whole line in it.
TEST_F(Mlflow, AFullDiskIsNamedAndLeavesNoHalfLine) {
  MlflowRun run = Open();
  const fs::path loss = run.folder() / "metrics" / "loss";
  ASSERT_TRUE(run.Write(1, std::vector<Scalar>{{"loss", 2}}).ok());
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit low = {fs::file_size(loss) + 5, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const absl::Status full = run.Write(2, std::vector<Scalar>{{"loss", 1}});
  const rlimit none = {0, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &none);
  const absl::Status fuller = run.Write(2, std::vector<Scalar>{{"other", 1}});
  ::setrlimit(RLIMIT_FSIZE, &old);
  ::signal(SIGXFSZ, handler);
  EXPECT_THAT(std::string(full.message()), HasSubstr(loss.string()));
  EXPECT_EQ(Text(loss), "1700000000123 2 1\n");
  EXPECT_THAT(std::string(fuller.message()), HasSubstr("metrics/other"));
  EXPECT_FALSE(fs::exists(run.folder() / "metrics" / "other"));
}

TEST(MlflowEnvironment, ATrackingUriIsAFolderOrElsewhere) {
  const auto read = [](const std::string& uri) {
    return MlflowFromEnvironment({{"MLFLOW_TRACKING_URI", uri}});
  };
  for (const auto& [uri, folder] :
       std::map<std::string, std::string>{{"", ""},
                                          {"outputs/mlruns", "outputs/mlruns"},
                                          {"./a:b", "./a:b"},
                                          {"/tmp/a%20b%", "/tmp/a b%"},
                                          {"file:///tmp/a%2fb", "/tmp/a/b"},
                                          {"file:mlruns", "mlruns"},
                                          {"file://localhost/tmp", "/tmp"}}) {
    EXPECT_EQ(read(uri).store, folder) << uri;
    EXPECT_EQ(read(uri).elsewhere, "") << uri;
  }
  const MlflowTarget by_service = MlflowFromEnvironment(
      {{"MLFLOW_TRACKING_URI", "https://a:6280"}, {"TUTTI_TRACKING", "https://a:6280"}});
  EXPECT_EQ(by_service.elsewhere, "") << "its metrics file goes there";
  EXPECT_EQ(by_service.store, "");
  EXPECT_EQ(MlflowFromEnvironment(
                {{"MLFLOW_TRACKING_URI", "https://b"}, {"TUTTI_TRACKING", "https://a:6280"}})
                .elsewhere,
            "https:");
  for (const auto& [uri, elsewhere] :
       std::map<std::string, std::string>{{"https://me:secret@example.com/x", "https:"},
                                          {"sqlite:///a.db", "sqlite:"},
                                          {"databricks", "databricks"},
                                          {"postgresql+psycopg2://a", "postgresql+psycopg2:"},
                                          {"file://server/share", "file://server"}}) {
    EXPECT_EQ(read(uri).store, "") << uri;
    EXPECT_EQ(read(uri).elsewhere, elsewhere) << uri;
  }
  const MlflowTarget target = MlflowFromEnvironment(
      {{"MLFLOW_RUN_ID", "a"}, {"MLFLOW_EXPERIMENT_NAME", "b"}, {"MLFLOW_EXPERIMENT_ID", "c"}});
  EXPECT_EQ(target.run_id + target.experiment_name + target.experiment_id, "abc");
}

}  // namespace
}  // namespace tutti::train
