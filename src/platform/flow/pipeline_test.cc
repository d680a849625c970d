#include "platform/flow/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::flow {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// a -> b -> d, c alone.
spec::JobSpec Diamond() {
  spec::JobSpec pipeline;
  pipeline.kind = spec::JobKind::kPipeline;
  pipeline.steps = {{.name = "d", .inputs_from = {{"x", "jobs.b.outputs.o"}}},
                    {.name = "a"},
                    {.name = "b", .inputs_from = {{"x", "jobs.a.outputs.o"}, {"y", "inputs.z"}}},
                    {.name = "c"}};
  return pipeline;
}

Child Completed() { return {.state = ChildState::kCompleted}; }
Child Failed(const std::string& reason, int second) {
  return {ChildState::kFailed, reason, absl::FromUnixSeconds(second)};
}
Child Canceled(int second) {
  return {ChildState::kCanceled, "canceled", absl::FromUnixSeconds(second)};
}

TEST(NextOfPipeline, StartsWhatNeedsNothingAndThenWhatIsReady) {
  EXPECT_THAT(NextOfPipeline(Diamond(), {}).starts, ElementsAre("a", "c"));
  EXPECT_EQ(NextOfPipeline(Diamond(), {}).line, "0 of 4 steps completed; queued a, c");
  const auto next = NextOfPipeline(Diamond(), {.children = {{"a", Completed()}, {"c", {}}}});
  EXPECT_THAT(next.starts, ElementsAre("b"));
  EXPECT_EQ(next.outcome, Outcome::kNone);
}

TEST(NextOfPipeline, TellsQueuedStepsFromThoseThatRun) {
  const PipelineNow now{.children = {{"a", {}}, {"c", {.queued = true}}}};
  EXPECT_EQ(NextOfPipeline(Diamond(), now).line, "0 of 4 steps completed; running a; queued c");
}

TEST(NextOfPipeline, EndsWhenEveryStepHasCompleted) {
  Child reused = Completed();
  reused.reused = true;
  const auto next = NextOfPipeline(
      Diamond(),
      {.children = {{"a", reused}, {"b", Completed()}, {"c", Completed()}, {"d", Completed()}}});
  EXPECT_EQ(next.outcome, Outcome::kCompleted);
  EXPECT_EQ(next.line, "all 4 steps completed, 1 of them reused from earlier jobs");
}

TEST(NextOfPipeline, AFailureStopsTheRestAndNamesItsStep) {
  const PipelineNow now{
      .children = {{"a", Failed("rank 0 failed with exit code 3", 5)}, {"c", {}}}};
  const auto next = NextOfPipeline(Diamond(), now);
  EXPECT_THAT(next.starts, IsEmpty());
  EXPECT_THAT(next.stops, ElementsAre("c"));
  EXPECT_EQ(next.outcome, Outcome::kNone);
  const auto end = NextOfPipeline(
      Diamond(), {.children = {{"a", Failed("exit code 3", 5)}, {"c", Canceled(4)}}});
  EXPECT_EQ(end.outcome, Outcome::kFailed);
  EXPECT_EQ(end.line, "step a failed: exit code 3; not started: d, b");
}

TEST(NextOfPipeline, TheStepThatFailedFirstIsNamed) {
  const auto end = NextOfPipeline(
      Diamond(), {.children = {{"a", Failed("late", 9)}, {"c", Failed("early", 2)}}});
  EXPECT_EQ(end.line, "step c failed: early; not started: d, b");
}

TEST(NextOfPipeline, WithContinueOnlyWhatNeedsTheFailedStepIsLeftOut) {
  spec::JobSpec pipeline = Diamond();
  pipeline.continue_on_step_failure = true;
  const auto next =
      NextOfPipeline(pipeline, {.children = {{"a", Failed("exit code 3", 5)}, {"c", {}}}});
  EXPECT_THAT(next.stops, IsEmpty());
  EXPECT_THAT(next.never, ElementsAre("b", "d"));
  EXPECT_EQ(next.outcome, Outcome::kNone);
  const auto end =
      NextOfPipeline(pipeline, {.children = {{"a", Failed("exit code 3", 5)}, {"c", Completed()}}});
  EXPECT_EQ(end.outcome, Outcome::kFailed);
}

TEST(NextOfPipeline, ACancelStopsEverythingAndStartsNothing) {
  const auto next =
      NextOfPipeline(Diamond(), {.children = {{"a", Completed()}, {"c", {}}}, .canceled = true});
  EXPECT_THAT(next.starts, IsEmpty());
  EXPECT_THAT(next.stops, ElementsAre("c"));
  EXPECT_EQ(NextOfPipeline(Diamond(), {.children = {{"a", Completed()}}, .canceled = true}).outcome,
            Outcome::kCanceled);
  EXPECT_EQ(NextOfPipeline(Diamond(), {.canceled = true}).outcome, Outcome::kCanceled);
}

TEST(NextOfPipeline, TheFirstStepGoesBeforeAllAndTheLastAfterAll) {
  spec::JobSpec pipeline = Diamond();
  pipeline.first_step = "c";
  pipeline.last_step = "d";
  pipeline.steps[0].inputs_from.clear();
  EXPECT_THAT(NextOfPipeline(pipeline, {}).starts, ElementsAre("c"));
  EXPECT_THAT(
      NextOfPipeline(pipeline, {.children = {{"c", Completed()}, {"a", Completed()}}}).starts,
      ElementsAre("b"));
  const PipelineNow broken{.children = {{"c", Completed()}, {"a", Failed("x", 1)}}};
  EXPECT_THAT(NextOfPipeline(pipeline, broken).starts, ElementsAre("d"));
  PipelineNow over = broken;
  over.children["d"] = Completed();
  EXPECT_EQ(NextOfPipeline(pipeline, over).outcome, Outcome::kFailed);
}

}  // namespace
}  // namespace tutti::flow
