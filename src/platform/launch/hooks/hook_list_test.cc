// Covers: command_hook.cc, folders_hook.cc, mlflow_hook.cc, distribution_hook.cc, secrets_hook.cc,
// node_hooks.cc, node_hook.h.
#include "platform/launch/hooks/hook_list.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "platform/launch/hooks/node_hooks.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {
namespace {

using ::testing::ElementsAre;

// Notes its calls, and fails in Prepare if it is told to.
class HookFake : public NodeHook {
 public:
  HookFake(std::string name, std::vector<std::string>* calls, bool fails = false)
      : name_(std::move(name)), calls_(calls), fails_(fails) {}
  absl::string_view name() const override { return name_; }
  bool StartsSlowly(const spec::LaunchPlan&) const override { return fails_; }
  absl::Status Prepare(NodeContext& node, const std::atomic<bool>&) override {
    Note("prepare");
    absl::StrAppend(&node.command, name_);
    return fails_ ? absl::NotFoundError(name_) : absl::OkStatus();
  }
  void AfterEnd(const spec::LaunchPlan&) override { Note("after end"); }
  void Describe(const NodeContext&, bool, Results&, nlohmann::json& left) override {
    left[name_] = true;
  }
  void CleanUp(const spec::LaunchPlan&) override { Note("clean up"); }

 private:
  void Note(absl::string_view what) { calls_->push_back(absl::StrCat(name_, ": ", what)); }
  const std::string name_;
  std::vector<std::string>* const calls_;
  const bool fails_;
};

class HookListTest : public ::testing::Test {
 protected:
  HookList List(bool first_fails) {
    std::vector<std::unique_ptr<NodeHook>> hooks;
    hooks.push_back(std::make_unique<HookFake>("a", &calls_, first_fails));
    hooks.push_back(std::make_unique<HookFake>("b", &calls_));
    return HookList(std::move(hooks));
  }
  std::vector<std::string> calls_;
  spec::LaunchPlan plan_;
  NodeContext node_{plan_, nullptr, nullptr, nullptr, {}};
};

TEST_F(HookListTest, EachSeesWhatThoseBeforeItHaveMade) {
  EXPECT_TRUE(List(false).Prepare(node_, /*cancelled=*/false).ok());
  EXPECT_EQ(node_.command, "ab");
}

TEST_F(HookListTest, TheFirstErrorEndsThePreparationButNotWhatComesAfter) {
  const HookList hooks = List(true);
  EXPECT_TRUE(absl::IsNotFound(hooks.Prepare(node_, /*cancelled=*/false)));
  hooks.AfterEnd(plan_);
  hooks.CleanUp(plan_);
  EXPECT_THAT(calls_, ElementsAre("a: prepare", "a: after end", "b: after end", "a: clean up",
                                  "b: clean up"));
  nlohmann::json left;
  Results results;
  hooks.Describe(node_, /*failed=*/false, results, left);
  EXPECT_EQ(left.size(), 2u);
}

TEST_F(HookListTest, IsAsSlowAsItsSlowestHook) {
  EXPECT_TRUE(List(true).StartsSlowly(plan_));
  EXPECT_FALSE(List(false).StartsSlowly(plan_));
  EXPECT_FALSE(List(true).PreparesSlowly(plan_));
}

class NodeHooksTest : public ::testing::Test {
 protected:
  NodeHooksTest() {
    plan_.allocation_id = "job.1";
    plan_.nodes = {{"n1", "127.0.0.1", 0, 1}};
    plan_.directory = (folder_.path() / "allocation").string();
    plan_.environment.is_host = true;
  }
  const base::TemporaryDirectory folder_;
  spec::LaunchPlan plan_;
};

TEST_F(NodeHooksTest, PrepareAPlainJobWithoutAThread) {
  const HookList hooks = NodeHooks();
  EXPECT_FALSE(hooks.PreparesSlowly(plan_));
  EXPECT_FALSE(hooks.StartsSlowly(plan_));
  plan_.snapshot = "hash";
  EXPECT_TRUE(hooks.PreparesSlowly(plan_));
  plan_.snapshot = "";
  plan_.inputs["x"] = {.path = "/data", .mode = "download"};
  EXPECT_TRUE(hooks.PreparesSlowly(plan_));
  plan_.inputs.clear();
  plan_.environment.is_host = false;
  EXPECT_TRUE(hooks.PreparesSlowly(plan_));
  plan_.distribution.type = "mpi";
  plan_.nodes[0].process_count = 2;
  EXPECT_TRUE(hooks.StartsSlowly(plan_));
}

TEST_F(NodeHooksTest, MakeFoldersInputsOutputsAndTheCommandThatNamesThem) {
  plan_.command = "train ${{inputs.n}} ${{outputs.model}}";
  plan_.inputs["n"] = {.type = "integer", .literal = "17"};
  plan_.outputs["model"] = {};
  NodeContext node{plan_, nullptr, nullptr, nullptr, {}};
  const absl::Status prepared = NodeHooks().Prepare(node, /*cancelled=*/false);
  ASSERT_TRUE(prepared.ok()) << prepared;
  const NodeFolders folders(plan_.directory);
  EXPECT_EQ(node.command, "train 17 " + (folders.outputs() / "model").string());
  EXPECT_TRUE(std::filesystem::is_directory(folders.outputs() / "model"));
  EXPECT_TRUE(std::filesystem::is_directory(folders.work_outputs()));
  EXPECT_EQ(*base::ReadFile(folders.host_file()), "127.0.0.1\n");
}

TEST_F(NodeHooksTest, NameTheInputThatIsNotThere) {
  plan_.inputs["data"] = {.path = "/no/such/folder"};
  NodeContext node{plan_, nullptr, nullptr, nullptr, {}};
  EXPECT_EQ(NodeHooks().Prepare(node, /*cancelled=*/false).message(),
            "input \"data\": /no/such/folder does not exist on node n1");
}

TEST_F(NodeHooksTest, SayWhyAnInputCannotBeLookedAt) {
  const std::filesystem::path loop = std::filesystem::path(plan_.directory).parent_path() / "loop";
  std::filesystem::create_symlink("loop", loop);
  plan_.inputs["data"] = {.path = loop.string()};
  NodeContext node{plan_, nullptr, nullptr, nullptr, {}};
  const absl::Status prepared = NodeHooks().Prepare(node, /*cancelled=*/false);
  EXPECT_EQ(std::string(prepared.message()),
            absl::StrCat("input \"data\": ", loop.string(),
                         " on node n1: Too many levels of symbolic links"));
}

TEST_F(NodeHooksTest, ARayJobRunsItsCommandBelowRayOnce) {
  plan_.distribution.type = "ray";
  NodeContext node{plan_, nullptr, nullptr, nullptr, {}};
  node.command = "python3 train.py";
  ASSERT_TRUE(NodeHooks().BeforeStart(node, /*cancelled=*/false).ok());
  EXPECT_THAT(node.command, ::testing::HasSubstr("ray start --head"));
}

// Lets this process open no file more, as long as it lives.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    ::getrlimit(RLIMIT_NOFILE, &former_);
    const base::UniqueFd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit none = {static_cast<rlim_t>(next.get()), former_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &former_); }

 private:
  rlimit former_ = {};
};

TEST_F(NodeHooksTest, AnImagesJobWhoseTrackingTokenFindsNoPlaceLogsToFiles) {
  plan_.environment.is_host = false;
  plan_.environment.image.reference = "docker.io/library/debian";
  plan_.tracks = true;
  const NodeFolders folders(plan_.directory);
  std::filesystem::create_directories(folders.spool());
  const auto events = *EventLog::Open(folders.events());
  const auto spool = *Spool::Open(folders.spool(), 0, 1);
  NodeContext node{plan_, nullptr, nullptr, nullptr, {}};
  node.events = events.get();
  node.spool = spool.get();
  node.facts.tracking = {.address = "http://10.0.0.1:1", .run = "beef", .token = "beef.01"};
  const auto hook = MakeSecretsHook();
  absl::Status prepared;
  {
    const NoMoreFiles none;
    prepared = hook->Prepare(node, /*cancelled=*/false);
  }
  EXPECT_TRUE(prepared.ok()) << prepared;
  EXPECT_EQ(node.facts.tracking.address, "");
  ASSERT_EQ(node.notes.size(), 1u);
  EXPECT_THAT(node.notes[0], ::testing::HasSubstr("what MLflow logs goes to files"));
}

}  // namespace
}  // namespace tutti::launch
