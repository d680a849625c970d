#include "platform/launch/outputs/resumed_files.h"

#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Two nodes of a job that resumes from the job "earlier", which has left a checkpoint, a declared
// output and a run of MLflow's.
class ResumedFilesTest : public ::testing::Test {
 protected:
  ResumedFilesTest() {
    Write(Earlier() / "checkpoints/step-1/state.json", "one");
    Write(Earlier() / "model/weights", "old");
    Write(Earlier() / "mlruns/0/meta.yaml", "run");
  }

  fs::path Earlier() const { return folder_.path() / "jobs/earlier/outputs"; }

  spec::LaunchPlan Plan(int node, int nodes = 2, int attempt = 1) const {
    spec::LaunchPlan plan;
    plan.job_id = "later";
    plan.node_index = node;
    for (int i = 0; i < nodes; ++i) plan.nodes.push_back({"n" + std::to_string(i + 1), "", i, 1});
    plan.outputs["model"];
    plan.resume = "earlier";
    plan.resume_outputs = Earlier();
    plan.attempt = attempt;
    plan.directory = FolderOf(node, attempt);
    if (attempt > 1) plan.former_directory = FolderOf(node, attempt - 1);
    return plan;
  }

  std::string FolderOf(int node, int attempt) const {
    return folder_.path() / ("later." + std::to_string(attempt)) / std::to_string(node);
  }

  static void Write(const fs::path& file, const std::string& text) {
    ASSERT_TRUE(base::MakeDirectories(file.parent_path()).ok());
    ASSERT_TRUE(base::WriteFileAtomic(file, text).ok());
  }

  static std::vector<std::string> PathsOf(const std::vector<Result>& files) {
    std::vector<std::string> paths;
    for (const Result& file : files) paths.push_back(file.path);
    return paths;
  }

  // Returns what the service is sent as the node is prepared.
  std::vector<std::string> Resume(const spec::LaunchPlan& plan) const {
    const auto first = CopyResumedFiles(plan, cancelled_);
    EXPECT_TRUE(first.ok()) << first.status();
    return first.ok() ? PathsOf(*first) : std::vector<std::string>();
  }

  // Returns what the service is sent as the job ends.
  static std::vector<std::string> Sent(const spec::LaunchPlan& plan) {
    Results results = ResultsOf(plan);
    LeaveOutResumedFiles(plan, results);
    return PathsOf(results.files);
  }

  const base::TemporaryDirectory folder_;
  std::atomic<bool> cancelled_ = false;
};

TEST_F(ResumedFilesTest, EachNodeHasThemAllAndTheFirstSendsThemBeforeAnyIsChanged) {
  const spec::LaunchPlan first = Plan(0), second = Plan(1);
  EXPECT_THAT(Resume(first), UnorderedElementsAre("outputs/checkpoints/step-1/state.json",
                                                  "outputs/model/weights"));
  EXPECT_THAT(Resume(second), IsEmpty());
  for (const spec::LaunchPlan* plan : {&first, &second}) {
    const NodeFolders folders(plan->directory);
    EXPECT_EQ(*base::ReadFile(folders.work_outputs() / "checkpoints/step-1/state.json"), "one");
    EXPECT_EQ(*base::ReadFile(folders.outputs() / "model/weights"), "old");
    EXPECT_FALSE(fs::exists(folders.work_outputs() / "mlruns"));
    EXPECT_THAT(Sent(*plan), IsEmpty());
  }
  Write(NodeFolders(second.directory).outputs() / "model/weights", "new");
  EXPECT_THAT(Sent(second), UnorderedElementsAre("outputs/model/weights"));
  EXPECT_THAT(Sent(first), IsEmpty()) << "its old one would overwrite that of the second node";
}

TEST_F(ResumedFilesTest, ALoneNodeSendsWhatItHasAtItsEnd) {
  const spec::LaunchPlan plan = Plan(0, /*nodes=*/1);
  EXPECT_THAT(Resume(plan), IsEmpty());
  fs::remove_all(NodeFolders(plan.directory).work_outputs() / "checkpoints");
  EXPECT_THAT(Sent(plan), UnorderedElementsAre("outputs/model/weights"));
}

TEST_F(ResumedFilesTest, ALaterAttemptKnowsWhatWasNeverChanged) {
  const spec::LaunchPlan first = Plan(1);
  EXPECT_FALSE(FormerAttemptHadBegun(Plan(1, 2, /*attempt=*/2))) << "nothing was copied yet";
  Resume(first);
  Write(NodeFolders(first.directory).outputs() / "model/weights", "new");
  const spec::LaunchPlan again = Plan(1, 2, /*attempt=*/2);
  ASSERT_TRUE(FormerAttemptHadBegun(again));
  fs::create_directories(again.directory);
  fs::copy(NodeFolders(first.directory).work(), NodeFolders(again.directory).work(),
           fs::copy_options::recursive);
  fs::copy(NodeFolders(first.directory).outputs(), NodeFolders(again.directory).outputs(),
           fs::copy_options::recursive);
  ASSERT_TRUE(KeepResumedFiles(again).ok());
  EXPECT_THAT(Sent(again), UnorderedElementsAre("outputs/model/weights"));
}

TEST_F(ResumedFilesTest, AnAttemptAfterOneThatWasNeverPreparedIsAsTheFirst) {
  spec::LaunchPlan first = Plan(0, 2, /*attempt=*/2), second = Plan(1, 2, /*attempt=*/2);
  for (spec::LaunchPlan* plan : {&first, &second}) plan->former_directory.clear();
  EXPECT_THAT(Resume(first), UnorderedElementsAre("outputs/checkpoints/step-1/state.json",
                                                  "outputs/model/weights"));
  EXPECT_THAT(Resume(second), IsEmpty());
  Write(NodeFolders(first.directory).outputs() / "model/weights", "new");
  EXPECT_THAT(Sent(first), UnorderedElementsAre("outputs/model/weights"));
  EXPECT_THAT(Sent(second), IsEmpty()) << "its old one would overwrite that of the first node";
}

TEST_F(ResumedFilesTest, ANodeThatDoesNotHaveThemSaysSo) {
  fs::remove_all(Earlier());
  const auto resumed = CopyResumedFiles(Plan(1), cancelled_);
  EXPECT_TRUE(absl::IsNotFound(resumed.status()));
  EXPECT_THAT(std::string(resumed.status().message()),
              HasSubstr("resume from job earlier: its outputs, " + Earlier().native() +
                        ", are not on node n2"));
}

}  // namespace
}  // namespace tutti::launch
