// Pipelines and sweeps through the whole service, with launchers that are played.
// Covers: flow/child_insertion.cc, flow/child_views.cc, flow/flow_children.cc, flow/flow_runner.cc,
// flow/flow_transitions.cc, flow/past_trials.cc, flow/step_starter.cc,
// flow/sweep_runner.cc, flow/trial.cc, flow/trial_metrics.cc, results/folder_content.cc,
// results/result_stamp.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/test_patience.h"
#include "platform/service/results/folder_content.h"
#include "platform/service/world_for_tests.h"

namespace tutti::service {
namespace {

using store::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPipeline[] = R"(type: pipeline
name: p
outputs: {model: }
jobs:
  a: {command: make, outputs: {o: }}
  b:
    command: use ${{inputs.x}}
    inputs: {x: "${{parent.jobs.a.outputs.o}}"}
    outputs: {m: "${{parent.outputs.model}}"}
  c: {command: alone}
)";

constexpr char kSweep[] = R"(type: sweep
name: s
trial: {command: "echo ${{search_space.x}}"}
sampling_algorithm: grid
search_space: {x: {type: choice, values: [1, 2, 3, 4]}}
objective: {goal: minimize, primary_metric: loss}
limits: {max_concurrent_trials: 2}
)";

class FlowTest : public ::testing::Test {
 protected:
  base::TemporaryDirectory folder_;
  World world_{folder_.path()};
  Service& service() { return world_.service(); }

  std::filesystem::path FolderOf(const std::string& job) { return service().files().FolderOf(job); }
  // A result that a step will have left in its output.
  void Leave(const std::string& job, const std::string& file, const std::string& text) {
    std::filesystem::create_directories((FolderOf(job) / file).parent_path());
    DiskEngine::Put(FolderOf(job) / file, text);
  }
  std::vector<std::string> ChildStates(const std::string& id) {
    std::vector<std::string> states;
    for (const ChildStatus& child : world_.Children(id)) {
      states.push_back(absl::StrCat(
          child.step, ":",
          child.job ? Name(child.job->record.last.state) : (child.never ? "never" : "waits")));
    }
    return states;
  }
};

TEST_F(FlowTest, JobsThatWaitAreToldTheirPlaceBehindStepsAndTrials) {
  world_.launchers().script() = {{0, nullptr}, {1, nullptr}};
  ASSERT_TRUE(world_.Submit().ok());
  ASSERT_TRUE(world_.StepUntilState("j", JobState::kRunning));
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntil([&] { return service().GetJob("p.c").ok(); }));
  ASSERT_TRUE(world_.Submit(kSweep).ok());
  ASSERT_TRUE(world_.StepUntil([&] { return service().GetJob("s.trial-2").ok(); }));
  ASSERT_TRUE(world_.Submit(absl::StrReplaceAll(kJobFile, {{"name: j", "name: last"}})).ok());

  const auto last = service().GetJob("last");
  ASSERT_TRUE(last.ok() && last->queue.has_value());
  EXPECT_EQ(last->queue->place, 5);
  std::vector<std::string> ahead;
  for (const QueuePlace::Ahead& job : last->queue->ahead) ahead.push_back(job.id);
  EXPECT_THAT(ahead, ElementsAre("p.a", "p.c", "s.trial-1"));
  EXPECT_EQ(last->start_is, StartIs::kNotKnown) << "steps have no time limit";
  EXPECT_EQ(service().GetJob("p.a")->start_is, StartIs::kLatest);
  EXPECT_EQ(service().GetJob("p.c")->start_is, StartIs::kEstimate);
  EXPECT_FALSE(service().GetJob("j")->queue.has_value()) << "it runs";

  const auto queues = service().ListQueues(4);
  ASSERT_TRUE(queues.ok());
  ASSERT_EQ(queues->size(), 1);
  EXPECT_EQ(queues->at(0).compute, "local");
  EXPECT_EQ(queues->at(0).count, 5);
  std::vector<std::string> told;
  for (const ComputeQueue::Job& job : queues->at(0).jobs) {
    told.push_back(
        absl::StrCat(job.place.value_or(0), " ", job.summary.id, " ", job.parent, " ", job.step));
  }
  EXPECT_THAT(told, ElementsAre("1 p.a p a", "2 p.c p c", "3 s.trial-1 s trial-1",
                                "4 s.trial-2 s trial-2"));
}

TEST_F(FlowTest, StepsRunInTheirOrderAndThePipelineCompletes) {
  const auto submitted = world_.Submit(kPipeline);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  service().Tick();
  service().Tick();
  EXPECT_THAT(ChildStates("p"), ElementsAre("a:Provisioning", "b:waits", "c:Provisioning"));
  Leave("p.b", "outputs/m/model.txt", "weights");
  ASSERT_TRUE(world_.StepUntilOver("p")) << world_.Reason("p");
  EXPECT_EQ(world_.Reason("p"), "all 3 steps completed");
  EXPECT_EQ(world_.State("p"), JobState::kCompleted);
  EXPECT_EQ(world_.engine().Starts().size(), 3u);
  const auto b = *service().GetJob("p.b");
  EXPECT_EQ(b.record.job.parent, "p");
  EXPECT_EQ(b.record.job.spec.inputs.at("x").path, (FolderOf("p.a") / "outputs/o").native());
  EXPECT_TRUE(std::filesystem::is_directory(FolderOf("p.a") / "outputs/o"));  // also when empty
  EXPECT_THAT(*service().ListJobs({}), ::testing::SizeIs(1));
  EXPECT_THAT(*service().ListJobs({.parent = "p"}), ::testing::SizeIs(3));
}

TEST_F(FlowTest, AFailedStepIsNamedByItsParentAndStopsTheOthers) {
  world_.launchers().script() = {{0, {{"code", 3}, {"last_error", "KeyError: 'x'"}}}};
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  EXPECT_EQ(world_.State("p"), JobState::kFailed);
  EXPECT_THAT(world_.Reason("p"), HasSubstr(" failed: rank 0 on n"));
  EXPECT_THAT(world_.Reason("p"), HasSubstr("exit code 3"));
  EXPECT_THAT(world_.Reason("p"), HasSubstr("not started: b"));
  EXPECT_THAT(ChildStates("p")[1], "b:never");
}

TEST_F(FlowTest, ACancelOfTheParentEndsEveryChild) {
  world_.launchers().script() = {{0, nullptr}};
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntil(
      [&] { return ChildStates("p")[0] == "a:Running" && ChildStates("p")[2] == "c:Running"; }));
  EXPECT_EQ(service().Cancel("p")->record.last.state, JobState::kFinalizing);
  ASSERT_TRUE(world_.StepUntilOver("p"));
  EXPECT_THAT(ChildStates("p"), ElementsAre("a:Canceled", "b:never", "c:Canceled"));
  EXPECT_EQ(world_.State("p"), JobState::kCanceled);
  EXPECT_EQ(world_.History("p"), "Queued Running Running Finalizing Canceled")
      << "its steps are queued, then they run";
}

TEST_F(FlowTest, AnUnchangedStepIsReusedAndAChangedOneRuns) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  const size_t starts = world_.engine().Starts().size();
  const std::string again =
      absl::StrReplaceAll(kPipeline, {{"name: p", "name: q"}, {"alone", "other"}});
  ASSERT_TRUE(world_.Submit(again).ok());
  ASSERT_TRUE(world_.StepUntilOver("q"));
  EXPECT_EQ(world_.Reason("q"), "all 3 steps completed, 2 of them reused from earlier jobs");
  EXPECT_EQ(world_.engine().Starts().size(), starts + 1);
  const auto children = world_.Children("q");
  EXPECT_EQ(children[0].reused_from, "p.a");
  EXPECT_EQ(children[2].reused_from, "");
  EXPECT_EQ(world_.History("q.a"), "Queued Finalizing Completed");
  // Its results and its output are there, and stay when the earlier job is deleted.
  ASSERT_TRUE(service().Delete("p").ok());
  EXPECT_TRUE(std::filesystem::exists(FolderOf("q.a") / "outputs/from-n1") ||
              std::filesystem::exists(FolderOf("q.a") / "outputs/from-n2"));
  EXPECT_THAT(world_.FollowerOutput("q.a"), ::testing::Contains("0:rank 0 last"));
  EXPECT_TRUE(absl::IsNotFound(service().GetJob("p.a").status()));
}

TEST_F(FlowTest, AStepWhoseKeptResultsWereChangedRunsAnew) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  Leave("p.a", "outputs/later", "written by a job that had it as its input");
  ASSERT_TRUE(world_.Submit(absl::StrReplaceAll(kPipeline, {{"name: p", "name: q"}})).ok());
  ASSERT_TRUE(world_.StepUntilOver("q"));
  const auto children = world_.Children("q");
  EXPECT_EQ(children[0].reused_from, "");
  EXPECT_EQ(children[1].reused_from, "p.b");
  EXPECT_FALSE(std::filesystem::exists(FolderOf("q.a") / "outputs/later"));
  // What was reused, and what ran, are reused in their turn.
  ASSERT_TRUE(world_.Submit(absl::StrReplaceAll(kPipeline, {{"name: p", "name: r"}})).ok());
  ASSERT_TRUE(world_.StepUntilOver("r"));
  EXPECT_EQ(world_.Reason("r"), "all 3 steps completed, 3 of them reused from earlier jobs");
  EXPECT_EQ(world_.Children("r")[0].reused_from, "q.a");
}

TEST_F(FlowTest, AStepWhoseKeptResultsCannotBeLookedAtRunsAnew) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  std::filesystem::remove_all(FolderOf("p.c"));
  std::filesystem::create_symlink(FolderOf("p.c"), FolderOf("p.c"));  // stands for a stale handle
  ASSERT_TRUE(world_.Submit(absl::StrReplaceAll(kPipeline, {{"name: p", "name: q"}})).ok());
  ASSERT_TRUE(world_.StepUntilOver("q"));
  EXPECT_EQ(world_.Children("q")[2].reused_from, "");
  EXPECT_EQ(world_.State("q"), JobState::kCompleted);
}

TEST_F(FlowTest, WhatIsWrittenToReusedResultsStaysOutOfTheEarlierOnes) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  ASSERT_TRUE(world_.Submit(absl::StrReplaceAll(kPipeline, {{"name: p", "name: q"}})).ok());
  ASSERT_TRUE(world_.StepUntilOver("q"));
  ASSERT_EQ(world_.Children("q")[0].reused_from, "p.a");
  const auto files = service().files().List("q.a");
  ASSERT_TRUE(files.ok() && !files->empty());
  for (const JobFile& file : *files) {
    EXPECT_FALSE(
        std::filesystem::equivalent(FolderOf("p.a") / file.path, FolderOf("q.a") / file.path))
        << file.path;
  }
}

TEST_F(FlowTest, ForceRerunRunsEveryStep) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  const std::string again =
      absl::StrReplaceAll(kPipeline, {{"name: p", "name: q\nsettings: {force_rerun: true}"}});
  ASSERT_TRUE(world_.Submit(again).ok());
  ASSERT_TRUE(world_.StepUntilOver("q"));
  EXPECT_EQ(world_.engine().Starts().size(), 6u);
}

TEST_F(FlowTest, AStepIsDeletedWithItsParentOnly) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  EXPECT_FALSE(service().Delete("p").ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  EXPECT_THAT(std::string(service().Delete("p.a").message()), HasSubstr("delete that one"));
  ASSERT_TRUE(service().Delete("p").ok());
  EXPECT_THAT(*service().ListJobs({.parent = "p"}), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(FolderOf("p.a")));
}

TEST_F(FlowTest, AParentIsDeletedWithItsChildrenInOneCommit) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  int64_t calls = 0;
  world_.Open({.on_commit = [&](int64_t call) { calls = call; }});
  ASSERT_TRUE(service().Delete("p").ok());
  EXPECT_EQ(calls, 6);  // before and after that of the start, of the mark, and of all rows
  EXPECT_TRUE(absl::IsNotFound(service().GetJob("p.a").status()));
  EXPECT_FALSE(std::filesystem::exists(FolderOf("p.a")));
}

TEST_F(FlowTest, ADeleteThatADeadServiceLeftIsFinishedOrTakenBackForAllOfAJobsFolders) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  const auto nothing_is_hidden = [&] { return service().files().Hidden().empty(); };
  for (const char* job : {"p", "p.a", "p.b"}) ASSERT_TRUE(service().files().Hide(job).ok());
  world_.Open();
  service().Run();
  ASSERT_TRUE(base::AwaitPatiently(absl::Seconds(20), nothing_is_hidden));
  EXPECT_TRUE(std::filesystem::exists(FolderOf("p.a")));
  for (const char* job : {"p", "p.a", "p.b"}) ASSERT_TRUE(service().files().Hide(job).ok());
  ASSERT_TRUE(world_.store().DeleteJob("p").ok());
  world_.Open();
  service().Run();
  EXPECT_TRUE(base::AwaitPatiently(absl::Seconds(20), nothing_is_hidden));
  EXPECT_FALSE(std::filesystem::exists(FolderOf("p.a")));
}

TEST_F(FlowTest, ADeleteThatADeadServiceHasMarkedIsFinished) {
  ASSERT_TRUE(world_.Submit(kPipeline).ok());
  ASSERT_TRUE(world_.StepUntilOver("p"));
  for (const char* job : {"p", "p.a", "p.b"}) ASSERT_TRUE(service().files().Hide(job).ok());
  ASSERT_TRUE(world_.store().BeginDeletion("p").ok());
  world_.Open();
  EXPECT_TRUE(absl::IsNotFound(service().GetJob("p").status()));
  service().Run();
  const auto deadline = base::Deadline::After(base::Patient(absl::Seconds(20)));
  while (world_.store().TreeOf("p").ok() && !deadline.Expired()) std::this_thread::yield();
  EXPECT_TRUE(absl::IsNotFound(world_.store().TreeOf("p").status()));
  EXPECT_TRUE(absl::IsNotFound(service().GetJob("p.a").status()));
  EXPECT_THAT(service().files().Hidden(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(FolderOf("p.a")));
}

// Reports the metric of each trial as it starts: the value of x, so that trial 1 is best.
void ReportMetrics(World& world, const std::filesystem::path& folder, const std::string& parent) {
  for (const ChildStatus& child : world.Children(parent)) {
    if (!child.job || child.job->record.last.state != JobState::kRunning) continue;
    const auto file = folder / "jobs" / child.job->record.job.id / "logs/rank-0.metrics";
    if (std::filesystem::exists(file)) continue;
    std::filesystem::create_directories(file.parent_path());
    DiskEngine::Put(file, absl::StrCat("{\"loss\": ", child.values.at(0).second, "}\n"));
  }
}

TEST_F(FlowTest, ASweepTriesEveryPointAndNamesTheBest) {
  ASSERT_TRUE(world_.Submit(kSweep).ok());
  ASSERT_TRUE(world_.StepUntil([&] {
    ReportMetrics(world_, folder_.path(), "s");
    return IsEnd(world_.State("s"));
  }));
  EXPECT_EQ(world_.State("s"), JobState::kCompleted);
  EXPECT_EQ(world_.Reason("s"), "best trial-1 with loss 1; 4 of 4 trials completed");
  const auto trials = world_.Children("s");
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_TRUE(trials[0].best);
  EXPECT_EQ(trials[3].metric, 4);
  EXPECT_THAT(trials[2].values, ElementsAre(std::pair<std::string, std::string>("x", "3")));
  const spec::JobSpec trial = service().GetJob("s.trial-3")->record.job.spec;
  EXPECT_EQ(trial.inputs.at("x").literal, "3");
  EXPECT_EQ(trial.environment_variables.count("MLFLOW_TRACKING_URI"), 0u) << "every job has one";
  EXPECT_TRUE(std::filesystem::exists(FolderOf("s") / "outputs"));
}

TEST_F(FlowTest, ASweepThatLearnsGoesOnAlsoWithTheNextService) {
  ASSERT_TRUE(world_
                  .Submit("type: sweep\nname: s\ntrial: {command: 'echo ${{search_space.x}}'}\n"
                          "sampling_algorithm: bayesian\n"
                          "search_space:\n  x: {type: uniform, min_value: 0, max_value: 1}\n"
                          "objective: {goal: minimize, primary_metric: loss}\n"
                          "limits: {max_total_trials: 40, max_concurrent_trials: 2}\n")
                  .ok());
  bool is_first = true;
  ASSERT_TRUE(world_.StepUntil([&] {
    ReportMetrics(world_, folder_.path(), "s");
    const bool has_learned = service().GetJob("s.trial-20").ok();
    if (has_learned && std::exchange(is_first, false)) world_.Open();
    return IsEnd(world_.State("s"));
  }));
  EXPECT_FALSE(is_first);
  EXPECT_THAT(world_.Reason("s"), HasSubstr("40 of 40 trials completed"));
  EXPECT_EQ(world_.Events("s").at(1).reason, "0 of 40 trials completed, 2 under way");
  double sum = 0;
  for (int number = 21; number <= 40; ++number) {
    const auto trial = service().GetJob(absl::StrCat("s.trial-", number));
    sum += std::stod(trial->record.job.spec.inputs.at("x").literal);
  }
  EXPECT_LT(sum / 20, 0.25) << "by random it would be 0.5";
}

TEST_F(FlowTest, WhatEndedTrialsHaveReportedIsKeptWithTheSweep) {
  ASSERT_TRUE(world_.Submit(kSweep).ok());
  ASSERT_TRUE(world_.StepUntil([&] {
    ReportMetrics(world_, folder_.path(), "s");
    return IsEnd(world_.State("s"));
  }));
  std::filesystem::remove_all(FolderOf("s.trial-3"));
  world_.Open();
  const auto trials = world_.Children("s");
  ASSERT_EQ(trials.size(), 4u);
  EXPECT_EQ(trials[2].metric, 3);
  EXPECT_THAT(trials[2].values, ElementsAre(std::pair<std::string, std::string>("x", "3")));
  EXPECT_TRUE(trials[0].best);
  EXPECT_EQ(trials[2].job->record.last.state, JobState::kCompleted);
}

TEST_F(FlowTest, ATrialsOutcomeIsKeptWhenItHasEndedAndShownBefore) {
  world_.launchers().script() = {{0, nullptr}};
  ASSERT_TRUE(world_.Submit(kSweep).ok());
  ASSERT_TRUE(world_.StepUntil([&] {
    ReportMetrics(world_, folder_.path(), "s");
    return world_.Children("s").size() == 2 && world_.Children("s")[0].metric == 1;
  }));
  EXPECT_FALSE(world_.Children("s")[0].best) << "it has not completed";
  EXPECT_EQ(world_.store().TrialsOf({.sweep = "s"})->at(0).cost, std::nullopt);
  world_.launchers().script().clear();
  ASSERT_TRUE(world_.StepUntil([&] {
    ReportMetrics(world_, folder_.path(), "s");
    return IsEnd(world_.State("s"));
  }));
  const auto kept = *world_.store().TrialsOf({.sweep = "s"});
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i].cost, static_cast<double>(i) + 1);
  EXPECT_THAT(*world_.store().UnreadTrials(0, 10), IsEmpty());
}

// Trials as a sweep has them that ended long ago.
class LargeSweepTest : public FlowTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_.Submit(kSweep).ok());
    ASSERT_TRUE(world_.StepUntil([&] {
      ReportMetrics(world_, folder_.path(), "s");
      return IsEnd(world_.State("s"));
    }));
  }
  void InsertTrial(int number, JobState end) {
    store::Job trial;
    trial.step = absl::StrCat("trial-", number);
    trial.id = absl::StrCat("s.", trial.step);
    trial.parent = "s";
    trial.trial_values = {absl::StrCat(number)};
    std::vector<store::Event> past;
    for (const JobState state : {JobState::kQueued, JobState::kFinalizing, end}) {
      past.push_back({.time = absl::UnixEpoch(), .state = state});
    }
    ASSERT_TRUE(world_.store().InsertJob(trial, past).ok());
  }
  void Note(int number, double cost) {
    ASSERT_TRUE(
        world_.store()
            .NoteTrials({{absl::StrCat("s.trial-", number), cost}}, store::Durability::kCrash)
            .ok());
  }
  static std::vector<std::string> StepsOf(const std::vector<ChildStatus>& trials) {
    std::vector<std::string> steps;
    for (const ChildStatus& trial : trials) steps.push_back(trial.step);
    return steps;
  }
};

TEST_F(LargeSweepTest, IsShownByItsFirstItsBestAndItsFailedTrialsAndTheOthersComeByPage) {
  for (int number = 5; number <= 230; ++number) {
    InsertTrial(number, number % 100 == 0 ? JobState::kFailed : JobState::kCompleted);
    Note(number, number == 217 ? 0.5 : number);
  }
  const auto shown = service().ChildrenOf("s");
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->list.size(), 100u);
  EXPECT_EQ(shown->list.back().step, "trial-100");
  EXPECT_THAT(shown->trials->counts, ElementsAre(::testing::Pair(JobState::kCompleted, 228),
                                                 ::testing::Pair(JobState::kFailed, 2)));
  EXPECT_EQ(shown->trials->best.size(), 10u);
  EXPECT_EQ(shown->trials->best[0].step, "trial-217");
  EXPECT_EQ(shown->trials->best[0].metric, 0.5);
  EXPECT_TRUE(shown->trials->best[0].best);
  EXPECT_FALSE(shown->trials->best[1].best);
  EXPECT_THAT(StepsOf(shown->trials->failed), ElementsAre("trial-100", "trial-200"));

  std::vector<ChildStatus> all = shown->list;
  for (std::string next = shown->trials->next; !next.empty();) {
    const auto page = service().TrialsOf("s", {.limit = 60, .after = next});
    ASSERT_TRUE(page.ok()) << page.status();
    all.insert(all.end(), page->trials.begin(), page->trials.end());
    next = page->next;
  }
  ASSERT_EQ(all.size(), 230u);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].step, absl::StrCat("trial-", i + 1));
  EXPECT_TRUE(all[216].best);

  using Order = store::TrialFilter::Order;
  const auto best = service().TrialsOf("s", {.order = Order::kBest, .limit = 3});
  EXPECT_THAT(StepsOf(best->trials), ElementsAre("trial-217", "trial-1", "trial-2"));
  const auto worse =
      service().TrialsOf("s", {.order = Order::kBest, .limit = 2, .after = best->next});
  EXPECT_THAT(StepsOf(worse->trials), ElementsAre("trial-3", "trial-4"));
  EXPECT_EQ(service().TrialsOf("s", {.after = best->next}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(service().TrialsOf("s.trial-1", {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(LargeSweepTest, WhatAnEarlierVersionNotedNowhereIsReadOnceAtTheStart) {
  constexpr int kTrials = 150;
  for (int number = 5; number <= kTrials; ++number) {
    InsertTrial(number, JobState::kCompleted);
    if (number == kTrials) continue;  // has reported nothing
    const auto file = FolderOf(absl::StrCat("s.trial-", number)) / "logs/rank-0.metrics";
    std::filesystem::create_directories(file.parent_path());
    DiskEngine::Put(file, absl::StrCat("{\"loss\": ", number == 140 ? -1 : number, "}\n"));
  }
  // A file where the folder should be.
  std::filesystem::remove_all(FolderOf("s.trial-7"));
  DiskEngine::Put(FolderOf("s.trial-7"), "");
  EXPECT_EQ(service().ChildrenOf("s")->trials->best[0].step, "trial-1");
  world_.Open();
  service().Run();
  EXPECT_TRUE(base::AwaitPatiently(
      absl::Seconds(20), [&] { return world_.store().UnreadTrials(0, 10)->size() == 1; }));
  EXPECT_EQ(world_.store().UnreadTrials(0, 10)->front().job, "s.trial-7");
  EXPECT_EQ(service().ChildrenOf("s")->trials->best[0].step, "trial-140");
  EXPECT_EQ(service().ChildrenOf("s")->list[98].metric, 99);
}

TEST_F(FlowTest, WhatRunningTrialsHaveReportedIsNotReadAnewForWhoeverLooks) {
  world_.launchers().script() = {{0, nullptr}};
  ASSERT_TRUE(world_.Submit(kSweep).ok());
  ASSERT_TRUE(world_.StepUntil([&] {
    ReportMetrics(world_, folder_.path(), "s");
    const auto trials = world_.Children("s");
    return !trials.empty() && trials[0].metric == 1;
  }));
  std::filesystem::remove_all(FolderOf("s.trial-1") / "logs");
  const auto trials = world_.Children("s");
  EXPECT_EQ(trials[0].metric, 1);
  EXPECT_THAT(trials[0].values, ElementsAre(std::pair<std::string, std::string>("x", "1")));
}

TEST_F(FlowTest, ATrialWhoseReportsCannotBeReadEndsOnceTheyCan) {
  ASSERT_TRUE(world_.Submit(kSweep).ok());
  const auto file = FolderOf("s.trial-2") / "logs/rank-7.metrics";
  for (int i = 0; i < 100; ++i) {
    ReportMetrics(world_, folder_.path(), "s");
    // A folder, which no read reads, once its logs have been opened.
    const bool runs = std::filesystem::exists(FolderOf("s.trial-2") / "logs/rank-0.metrics");
    if (runs) std::filesystem::create_directories(file);
    world_.Step();
  }
  EXPECT_FALSE(IsEnd(world_.State("s")));
  EXPECT_THAT(service().Problems(),
              ::testing::Contains(HasSubstr("what job s.trial-2 has reported cannot be read")));
  std::filesystem::remove(file);
  ASSERT_TRUE(world_.StepUntilState("s", JobState::kCompleted));
  EXPECT_THAT(world_.Reason("s"), HasSubstr("4 of 4 trials completed"));
}

TEST_F(FlowTest, NoMoreTrialsRunAtOnceThanTheLimitSays) {
  world_.launchers().script() = {{0, nullptr}};
  ASSERT_TRUE(world_.Submit(kSweep).ok());
  ASSERT_TRUE(world_.StepUntil([&] {
    const auto states = ChildStates("s");
    return states.size() == 2 && states[1] == "trial-2:Running";
  }));
  for (int i = 0; i < 20; ++i) world_.Step();
  EXPECT_EQ(ChildStates("s").size(), 2u);
}

TEST_F(FlowTest, ATrialThatFallsBehindIsStoppedAndSaysWhy) {
  world_.launchers().script() = {{0, nullptr}};
  ASSERT_TRUE(world_
                  .Submit(absl::StrCat(kSweep,
                                       "early_termination: {type: bandit, "
                                       "slack_amount: 0.5}\n"))
                  .ok());
  ASSERT_TRUE(world_.StepUntil([&] {
    ReportMetrics(world_, folder_.path(), "s");
    return world_.service().GetJob("s.trial-2").ok() &&
           world_.State("s.trial-2") == JobState::kCanceled;
  }));
  EXPECT_THAT(world_.Reason("s.trial-2"), HasSubstr("stopped early by bandit at report 1"));
  EXPECT_EQ(world_.State("s.trial-1"), JobState::kRunning);
}

// A sweep of one trial that looks for `metric` and leaves these files in MLflow's store.
std::string ReasonWithMlflow(World& world, absl::string_view metric,
                             const std::function<void()>& leave) {
  const std::string text = absl::StrReplaceAll(
      kSweep, {{"[1, 2, 3, 4]", "[1]"},
               {"primary_metric: loss", absl::StrCat("primary_metric: ", metric)}});
  EXPECT_TRUE(world.Submit(text).ok());
  EXPECT_TRUE(world.StepUntil([&] {
    const auto children = world.Children("s");
    if (children.empty() || children[0].job->record.last.state != JobState::kRunning) {
      return !children.empty() && IsEnd(world.State("s"));
    }
    leave();
    return false;
  }));
  return world.Reason("s");
}

TEST_F(FlowTest, MlflowsFileStoreCountsOnceTheTrialHasEnded) {
  const std::string reason = ReasonWithMlflow(world_, "loss", [&] {
    Leave("s.trial-1", "outputs/mlruns/0/run/metrics/loss", "1700000000000 0.5 0\n");
  });
  EXPECT_EQ(reason, "best trial-1 with loss 0.5; 1 of 1 trial completed");
}

TEST_F(FlowTest, AMetricOfMlflowsThatLiesInAFolderHasItsWholeName) {
  const std::string reason = ReasonWithMlflow(world_, "evaluation/top1", [&] {
    Leave("s.trial-1", "outputs/mlruns/0/run/metrics/evaluation/top1", "1700000000000 0.5 0\n");
  });
  EXPECT_EQ(reason, "best trial-1 with evaluation/top1 0.5; 1 of 1 trial completed");
}

TEST_F(FlowTest, OtherMetricsOfMlflowsAreNamedWhole) {
  const std::string reason = ReasonWithMlflow(world_, "top1", [&] {
    Leave("s.trial-1", "outputs/mlruns/0/run/metrics/evaluation/top1", "1700000000000 0.5 0\n");
  });
  EXPECT_THAT(reason, HasSubstr("evaluation/top1"));
}

TEST(FolderContent, DigestsFollowNamesAndBytes) {
  std::atomic<bool> stop = false;
  FileDigests digests(&stop);
  const base::TemporaryDirectory folder;
  const auto put = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder.path() / path).parent_path());
    DiskEngine::Put(folder.path() / path, text);
  };
  put("a/x/1", "one");
  put("a/2", "two");
  ASSERT_TRUE(LinkContent(folder.path() / "a", folder.path() / "b").ok());
  EXPECT_EQ(*DigestOf(folder.path() / "a", digests), *DigestOf(folder.path() / "b", digests));
  EXPECT_TRUE(std::filesystem::equivalent(folder.path() / "a/2", folder.path() / "b/2"));
  ASSERT_TRUE(CopyContent(folder.path() / "a", folder.path() / "own").ok());
  EXPECT_EQ(*DigestOf(folder.path() / "a", digests), *DigestOf(folder.path() / "own", digests));
  EXPECT_FALSE(std::filesystem::equivalent(folder.path() / "a/2", folder.path() / "own/2"));
  put("c/x/1", "one");
  put("c/3", "two");
  EXPECT_NE(*DigestOf(folder.path() / "a", digests), *DigestOf(folder.path() / "c", digests));
  ASSERT_TRUE(LinkContent(folder.path() / "c", folder.path() / "b").ok());
  EXPECT_EQ(*DigestOf(folder.path() / "b", digests), *DigestOf(folder.path() / "c", digests));
  EXPECT_FALSE(DigestOf(folder.path() / "none", digests).ok());
}

// kill -9 of the service at every call of its store: no child is lost and none runs twice.
class FlowCrash : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 1);
  }
  static void TearDownTestSuite() { ::unsetenv("TMPDIR"); }

  // Plays `job` in a process of its own that dies at store call `die_at` (0: never).
  static int Live(const std::filesystem::path& folder, const std::string& text,
                  const std::string& id, int64_t die_at) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      World world(folder);
      if (die_at > 0) {
        world.Open({.on_commit = [die_at](int64_t call) {
          if (call == die_at) ::_exit(77);
        }});
      }
      const auto submitted = world.Submit(text);
      if (!submitted.ok() && !absl::IsAlreadyExists(submitted.status())) ::_exit(2);
      const bool over = world.StepUntil([&] {
        if (id == "s") ReportMetrics(world, folder, "s");
        return IsEnd(world.State(id)) && world.engine().Allocations().empty();
      });
      ::_exit(over ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  void DieEverywhere(const std::string& text, const std::string& id, const std::string& reason,
                     size_t children) {
    for (int64_t die_at = 1;; ++die_at) {
      base::TemporaryDirectory folder;
      const int code = Live(folder.path(), text, id, die_at);
      ASSERT_TRUE(code == 77 || code == 0) << "at call " << die_at << ": " << code;
      if (code == 77) {
        ASSERT_EQ(Live(folder.path(), text, id, 0), 0) << "after " << die_at;
      }
      World world(folder.path());
      EXPECT_EQ(world.Reason(id), reason) << "after " << die_at;
      EXPECT_EQ(world.service().ListJobs({.parent = id})->size(), children);
      // Each child's launcher began once.
      const std::vector<std::string> starts = world.engine().Starts();
      EXPECT_EQ(starts.size(), children) << "after " << die_at;
      EXPECT_EQ(std::set<std::string>(starts.begin(), starts.end()).size(), children);
      ASSERT_FALSE(HasFailure()) << "after dying at call " << die_at;
      if (code == 0) return;
    }
  }
};

constexpr char kShort[] = R"(type: pipeline
name: p
outputs: {model: }
jobs:
  a: {command: make, outputs: {o: }}
  b: {command: "use ${{inputs.x}}", inputs: {x: "${{parent.jobs.a.outputs.o}}"}, outputs: {m: "${{parent.outputs.model}}"}}
)";

TEST_F(FlowCrash, AtEveryWriteOfAPipeline) {
  DieEverywhere(kShort, "p", "all 2 steps completed", 2);
}

TEST_F(FlowCrash, AtEveryWriteOfASweep) {
  // Each call of the store costs a life: two trials have all that more would have.
  const std::string two = absl::StrReplaceAll(kSweep, {{"[1, 2, 3, 4]", "[1, 2]"}});
  DieEverywhere(two, "s", "best trial-1 with loss 1; 2 of 2 trials completed", 2);
}

}  // namespace
}  // namespace tutti::service
