#include "runtime/parallel/pipeline/timetable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::parallel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads one line a stage, "F0 F1 B0 B1".
Timetable TableOf(std::initializer_list<absl::string_view> lines) {
  Timetable table;
  for (const absl::string_view line : lines) {
    std::vector<Action>& actions = table.emplace_back();
    for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipWhitespace())) {
      Action action{word[0] == 'F' ? Pass::kForward : Pass::kBackward, 0};
      EXPECT_TRUE(absl::SimpleAtoi(word.substr(1), &action.micro_batch)) << word;
      actions.push_back(action);
    }
  }
  return table;
}

std::string ErrorOf(std::initializer_list<absl::string_view> lines) {
  const absl::Status status = Check(TableOf(lines));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

// Calls `body` (schedule, stages, micro-batches) with all of up to 8 and 12.
template <typename Body>
void ForAllTables(const Body& body) {
  for (const ScheduleEntry& schedule : Schedules()) {
    for (int64_t stages = 1; stages <= 8; ++stages) {
      for (int64_t micro_batches = 1; micro_batches <= 12; ++micro_batches) {
        SCOPED_TRACE(absl::StrCat(schedule.name, " ", stages, " ", micro_batches));
        body(schedule, stages, micro_batches);
      }
    }
  }
}

TEST(Schedules, AreAsDrawnInTheHeader) {
  EXPECT_EQ(GPipe(3, 4), TableOf({"F0 F1 F2 F3 B0 B1 B2 B3", "F0 F1 F2 F3 B0 B1 B2 B3",
                                  "F0 F1 F2 F3 B0 B1 B2 B3"}));
  EXPECT_EQ(
      OneForwardOneBackward(3, 4),
      TableOf({"F0 F1 F2 B0 F3 B1 B2 B3", "F0 F1 B0 F2 B1 F3 B2 B3", "F0 B0 F1 B1 F2 B2 F3 B3"}));
}

TEST(Schedules, WithFewerMicroBatchesThanStagesWarmUpWithThoseThereAre) {
  EXPECT_EQ(OneForwardOneBackward(4, 2),
            TableOf({"F0 F1 B0 B1", "F0 F1 B0 B1", "F0 F1 B0 B1", "F0 B0 F1 B1"}));
  EXPECT_EQ(OneForwardOneBackward(1, 2), TableOf({"F0 B0 F1 B1"}));
  EXPECT_EQ(GPipe(1, 1), TableOf({"F0 B0"}));
}

TEST(Schedules, AreFoundByName) {
  EXPECT_THAT(ScheduleNames(), ElementsAre("1f1b", "gpipe"));
  EXPECT_EQ(ScheduleNamed("gpipe").make(2, 3), GPipe(2, 3));
  EXPECT_EQ(ScheduleNamed("1f1b").make(2, 3), OneForwardOneBackward(2, 3));
}

TEST(Schedules, CanBeFollowedByAnyNumberOfStages) {
  ForAllTables([](const ScheduleEntry& schedule, int64_t stages, int64_t micro_batches) {
    const Timetable table = schedule.make(stages, micro_batches);
    EXPECT_EQ(table.size(), static_cast<size_t>(stages));
    EXPECT_EQ(Check(table), absl::OkStatus());
    for (const auto& actions : table) {
      int64_t forward = 0, backward = 0;
      for (const Action& action : actions) {
        int64_t& next = action.pass == Pass::kForward ? forward : backward;
        EXPECT_EQ(action.micro_batch, next++);
      }
      EXPECT_EQ(forward, micro_batches);
      EXPECT_EQ(backward, micro_batches);
    }
  });
}

TEST(Schedules, KeepAsManyMicroBatchesInFlightAsTheyPromise) {
  for (int64_t stages = 1; stages <= 8; ++stages) {
    for (int64_t micro_batches = 1; micro_batches <= 12; ++micro_batches) {
      const Timetable all = GPipe(stages, micro_batches);
      const Timetable few = OneForwardOneBackward(stages, micro_batches);
      for (int64_t stage = 0; stage < stages; ++stage) {
        const auto i = static_cast<size_t>(stage);
        EXPECT_EQ(MostInFlight(all[i]), micro_batches);
        EXPECT_EQ(MostInFlight(few[i]), std::min(micro_batches, stages - stage));
      }
    }
  }
  EXPECT_EQ(MostInFlight({}), 0);
}

TEST(Schedules, OfEqualStagesWaitOnlyForThePipelineToFillAndToDrain) {
  ForAllTables([](const ScheduleEntry& schedule, int64_t stages, int64_t micro_batches) {
    const std::vector<StageSeconds> equal(static_cast<size_t>(stages), {1, 2});
    const auto run = Simulate(schedule.make(stages, micro_batches), equal, 0);
    const auto p = static_cast<double>(stages), m = static_cast<double>(micro_batches);
    EXPECT_EQ(run.makespan, (m + p - 1) * 3);
    EXPECT_NEAR(run.bubble, (p - 1) / (m + p - 1), 1e-12);
  });
}

std::vector<double> BeginsOf(const std::vector<TimedAction>& actions) {
  std::vector<double> begins;
  for (const TimedAction& timed : actions) begins.push_back(timed.begin);
  return begins;
}

TEST(Simulate, UnequalStagesWaitForTheSlowerOne) {
  const std::vector<StageSeconds> seconds = {{1, 2}, {2, 3}};
  const Simulation gpipe = Simulate(GPipe(2, 3), seconds, 0);
  EXPECT_THAT(BeginsOf(gpipe.stages[0]), ElementsAre(0, 1, 2, 10, 13, 16));
  EXPECT_THAT(BeginsOf(gpipe.stages[1]), ElementsAre(1, 3, 5, 7, 10, 13));
  EXPECT_EQ(gpipe.makespan, 18);
  EXPECT_NEAR(gpipe.bubble, 1 - 24. / 36, 1e-12);

  const Simulation alternating = Simulate(OneForwardOneBackward(2, 3), seconds, 0);
  EXPECT_THAT(BeginsOf(alternating.stages[0]), ElementsAre(0, 1, 6, 8, 11, 16));
  EXPECT_THAT(BeginsOf(alternating.stages[1]), ElementsAre(1, 3, 6, 8, 11, 13));
  EXPECT_EQ(alternating.stages[0][3].action, (Action{Pass::kForward, 2}));
  EXPECT_EQ(alternating.stages[0][3].end, 9);
  EXPECT_EQ(alternating.makespan, 18);
}

TEST(Simulate, ATransferDelaysWhatNeedsIt) {
  const std::vector<StageSeconds> seconds = {{1, 2}, {2, 3}};
  const Simulation run = Simulate(OneForwardOneBackward(2, 3), seconds, 0.5);
  EXPECT_THAT(BeginsOf(run.stages[0]), ElementsAre(0, 1, 7, 9, 12, 17));
  EXPECT_THAT(BeginsOf(run.stages[1]), ElementsAre(1.5, 3.5, 6.5, 8.5, 11.5, 13.5));
  EXPECT_EQ(run.makespan, 19);
}

TEST(Simulate, StagesThatTakeNoTimeHaveNoBubble) {
  const auto run = Simulate(GPipe(2, 2), std::vector<StageSeconds>(2), 0);
  EXPECT_EQ(run.makespan, 0);
  EXPECT_EQ(run.bubble, 0);
}

TEST(CheckTimetable, TellsWhichMicroBatchIsMissing) {
  EXPECT_EQ(ErrorOf({"F0 F1 B0 B1", "F0 B0"}), "stage 1 never does forward 1");
  EXPECT_EQ(ErrorOf({"F0 F1 B0", "F0 B0 F1 B1"}), "stage 0 never does backward 1");
  EXPECT_EQ(ErrorOf({"F7 B7"}), "stage 0 never does forward 0");
  EXPECT_EQ(ErrorOf({"F0 B0", ""}), "stage 1 never does forward 0");
}

TEST(CheckTimetable, TellsWhichMicroBatchIsDoneTwice) {
  EXPECT_EQ(ErrorOf({"F0 B0", "F0 F0 B0"}), "stage 1 does forward 0 twice");
  EXPECT_EQ(ErrorOf({"F0 F1 B0 B1 B0", "F0 F1 B0 B1"}), "stage 0 does backward 0 twice");
}

TEST(CheckTimetable, TellsOfABackwardPassThatComesTooEarly) {
  EXPECT_EQ(ErrorOf({"F0 B0 F1 B1", "F0 B1 F1 B0"}),
            "stage 1 does backward 1 before it has done forward 1");
}

TEST(CheckTimetable, TellsWhoWaitsForWhomInADeadlock) {
  // Stage 0 wants the first gradient before it sends what stage 1 begins with.
  EXPECT_EQ(ErrorOf({"F0 B0 F1 B1", "F0 F1 B0 B1"}),
            "stage 0 waits for ever for backward 0 of stage 1, which waits itself, to do forward "
            "1");
  // The last two stages wait for each other; the first has done all it can.
  EXPECT_THAT(ErrorOf({"F0 F1 B0 B1", "F0 B0 F1 B1", "F0 F1 B0 B1"}),
              HasSubstr("stage 0 waits for ever for backward 0 of stage 1"));
}

TEST(CheckTimetable, RefusesMessagesThatAreUsedInAnotherOrderThanTheyAreSent) {
  EXPECT_EQ(ErrorOf({"F0 F1 B0 B1", "F1 F0 B1 B0"}),
            "stage 1 does forward 1 where stage 0 does forward 0");
  EXPECT_EQ(ErrorOf({"F0 F1 B0 B1", "F0 F1 B1 B0"}),
            "stage 1 does backward 1 where stage 0 does backward 0");
}

TEST(CheckTimetable, RefusesEmptyTablesAndNegativeNumbers) {
  EXPECT_EQ(ErrorOf({}), "the schedule has no micro-batch");
  EXPECT_EQ(ErrorOf({"", ""}), "the schedule has no micro-batch");
  EXPECT_EQ(ErrorOf({"F-1 F0 B0"}), "stage 0 does forward -1, and micro-batches count from 0");
}

}  // namespace
}  // namespace tutti::parallel
