// Says in which order the stages of a pipeline compute their micro-batches, as tables made by pure
// functions. What executes a table (pipeline_parallel.h) knows none of them by name: a new schedule
// is a function and a line in Schedules().
//
// Three stages and four micro-batches, where a backward pass takes as long as a forward pass:
//
//     GPipe                                   1F1B
//   0 F0 F1 F2 F3             B0 B1 B2 B3     F0 F1 F2       B0 F3 B1    B2    B3
//   1    F0 F1 F2 F3       B0 B1 B2 B3           F0 F1    B0 F2 B1 F3 B2    B3
//   2       F0 F1 F2 F3 B0 B1 B2 B3                 F0 B0 F1 B1 F2 B2 F3 B3
//
// Huang et al. 2019, "GPipe: Efficient Training of Giant Neural Networks using Pipeline
// Parallelism"; 1F1B: Narayanan et al. 2019, "PipeDream", with the flush of Narayanan et al. 2021,
// "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::parallel {

enum class Pass { kForward, kBackward };

struct Action {
  Pass pass = Pass::kForward;
  int64_t micro_batch = 0;
  bool operator==(const Action&) const = default;
};

// By stage, in the order in which the stage does them. Gradients add up in the order of a stage's
// backward passes, which in both schedules is that of the micro-batches.
using Timetable = std::vector<std::vector<Action>>;

// All forward passes, then all backward passes: every stage keeps all micro-batches.
Timetable GPipe(int64_t stages, int64_t micro_batches);
// Each stage begins with as many forward passes as there are stages behind it, then takes one
// forward and one backward in turn: stage s keeps at most stages - s micro-batches.
Timetable OneForwardOneBackward(int64_t stages, int64_t micro_batches);

struct ScheduleEntry {
  absl::string_view name;   // of --pipeline-schedule
  absl::string_view about;  // for its help
  Timetable (*make)(int64_t stages, int64_t micro_batches);
};
const std::vector<ScheduleEntry>& Schedules();
std::vector<absl::string_view> ScheduleNames();
// Aborts unless there is one of that name.
const ScheduleEntry& ScheduleNamed(absl::string_view name);

// Checks that the stages can follow it: each passes every micro-batch once in each direction,
// backward after forward, uses what its neighbours send in the order in which they do, and none
// ends up waiting for another for ever. InvalidArgument names the stage and the action that cannot
// be.
absl::Status Check(const Timetable& table);

// Counts the micro-batches of which a stage keeps activations at its worst moment.
int64_t MostInFlight(std::span<const Action> actions);

// Seconds of one micro-batch, by stage.
struct StageSeconds {
  double forward = 0, backward = 0;
};

struct TimedAction {
  Action action;
  double begin = 0, end = 0;  // seconds since the first stage began
};

struct Simulation {
  std::vector<std::vector<TimedAction>> stages;
  double makespan = 0;
  // The part of the stages' time in which they wait: 1 - sum of work / (stages * makespan). With
  // equal stages (p - 1) / (m + p - 1).
  double bubble = 0;
};
// Lets every action begin as soon as its stage is free and its input is there, which takes
// `transfer` seconds from a neighbour, during which both may compute. `seconds` has one entry a
// stage; the table passed Check.
Simulation Simulate(const Timetable& table, std::span<const StageSeconds> seconds, double transfer);

}  // namespace tutti::parallel
