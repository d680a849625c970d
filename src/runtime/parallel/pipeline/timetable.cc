#include "runtime/parallel/pipeline/timetable.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::parallel {
namespace {

using DoneMicroBatches = std::map<int64_t, size_t>;  // to the action's place in its stage

// Where each stage's actions stand in its list, by pass.
struct ActionPlaces {
  DoneMicroBatches forward, backward;
  DoneMicroBatches& of(Pass pass) { return pass == Pass::kForward ? forward : backward; }
};

std::string TextOf(const Action& action) {
  return absl::StrCat(action.pass == Pass::kForward ? "forward " : "backward ", action.micro_batch);
}

// Returns the stage from which an action's input comes; none: the stage has it itself.
std::optional<size_t> SourceOf(const Action& action, size_t stage, size_t stages) {
  if (action.pass == Pass::kForward) return stage > 0 ? std::optional(stage - 1) : std::nullopt;
  return stage + 1 < stages ? std::optional(stage + 1) : std::nullopt;
}

// Has each stage do what it can until none can do any more, in rounds, and returns how many actions
// each has done. `visit` (stage, place in the stage, place of the action in its source or none)
// comes after the visits to all that the action needs.
template <typename Visit>
std::vector<size_t> FollowTimetable(const Timetable& table, const Visit& visit) {
  std::vector<size_t> done(table.size(), 0);
  std::vector<ActionPlaces> places(table.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t stage = 0; stage < table.size(); ++stage) {
      for (size_t& next = done[stage]; next < table[stage].size(); ++next) {
        const Action& action = table[stage][next];
        std::optional<size_t> input;
        if (const auto source = SourceOf(action, stage, table.size()); source.has_value()) {
          const DoneMicroBatches& theirs = places[*source].of(action.pass);
          const auto sent = theirs.find(action.micro_batch);
          if (sent == theirs.end()) break;
          input = sent->second;
        }
        places[stage].of(action.pass).emplace(action.micro_batch, next);
        visit(stage, next, input);
        moved = true;
      }
    }
  }
  return done;
}

// Checks that a stage passes each of the micro-batches once in each direction.
absl::Status CheckActions(size_t stage, std::span<const Action> actions, int64_t micro_batches) {
  ActionPlaces places;
  for (size_t i = 0; i < actions.size(); ++i) {
    const auto& [pass, micro_batch] = actions[i];
    if (micro_batch < 0) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage, " does ", TextOf(actions[i]),
                                                     ", and micro-batches count from 0"));
    }
    if (!places.of(pass).emplace(micro_batch, i).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", stage, " does ", TextOf(actions[i]), " twice"));
    }
    if (pass == Pass::kBackward && !places.forward.contains(micro_batch)) {
      return absl::InvalidArgumentError(absl::StrCat("stage ", stage, " does ", TextOf(actions[i]),
                                                     " before it has done forward ", micro_batch));
    }
  }
  for (int64_t i = 0; i < micro_batches; ++i) {
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      if (!places.of(pass).contains(i)) {
        return absl::InvalidArgumentError(
            absl::StrCat("stage ", stage, " never does ", TextOf({pass, i})));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<int64_t> OrderOf(std::span<const Action> actions, Pass pass) {
  std::vector<int64_t> order;
  for (const Action& action : actions) {
    if (action.pass == pass) order.push_back(action.micro_batch);
  }
  return order;
}

// Messages between neighbours have no number: the first that is sent is the first that is used.
absl::Status CheckOrder(const Timetable& table) {
  for (size_t stage = 1; stage < table.size(); ++stage) {
    for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
      const auto order = OrderOf(table[stage], pass), before = OrderOf(table[stage - 1], pass);
      const auto differs = std::mismatch(order.begin(), order.end(), before.begin());
      if (differs.first == order.end()) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", stage, " does ", TextOf({pass, *differs.first}), " where stage ",
                       stage - 1, " does ", TextOf({pass, *differs.second})));
    }
  }
  return absl::OkStatus();
}

int64_t MicroBatchesOf(const Timetable& table) {
  int64_t last = -1;
  for (const auto& actions : table) {
    for (const Action& action : actions) last = std::max(last, action.micro_batch);
  }
  return last + 1;
}

}  // namespace

Timetable GPipe(int64_t stages, int64_t micro_batches) {
  std::vector<Action> actions;
  for (const Pass pass : {Pass::kForward, Pass::kBackward}) {
    for (int64_t i = 0; i < micro_batches; ++i) actions.push_back({pass, i});
  }
  return Timetable(static_cast<size_t>(stages), actions);
}

Timetable OneForwardOneBackward(int64_t stages, int64_t micro_batches) {
  Timetable table(static_cast<size_t>(stages));
  for (int64_t stage = 0; stage < stages; ++stage) {
    std::vector<Action>& actions = table[static_cast<size_t>(stage)];
    const int64_t ahead = std::min(stages - 1 - stage, micro_batches);
    for (int64_t i = 0; i < ahead; ++i) actions.push_back({Pass::kForward, i});
    for (int64_t i = 0; i < micro_batches; ++i) {
      if (ahead + i < micro_batches) actions.push_back({Pass::kForward, ahead + i});
      actions.push_back({Pass::kBackward, i});
    }
  }
  return table;
}

const std::vector<ScheduleEntry>& Schedules() {
  static const std::vector<ScheduleEntry> schedules = {
      {.name = "1f1b",
       .about = "one forward and one backward pass in turn: few micro-batches in memory",
       .make = OneForwardOneBackward},
      {.name = "gpipe",
       .about = "all forward passes before the first backward pass",
       .make = GPipe},
  };
  return schedules;
}

std::vector<absl::string_view> ScheduleNames() {
  std::vector<absl::string_view> names;
  for (const ScheduleEntry& each : Schedules()) names.push_back(each.name);
  return names;
}

const ScheduleEntry& ScheduleNamed(absl::string_view name) {
  for (const ScheduleEntry& each : Schedules()) {
    if (each.name == name) return each;
  }
  std::abort();
}

absl::Status Check(const Timetable& table) {
  const int64_t micro_batches = MicroBatchesOf(table);
  if (micro_batches == 0) return absl::InvalidArgumentError("the schedule has no micro-batch");
  for (size_t stage = 0; stage < table.size(); ++stage) {
    TUTTI_RETURN_IF_ERROR(CheckActions(stage, table[stage], micro_batches));
  }
  TUTTI_RETURN_IF_ERROR(CheckOrder(table));
  const std::vector<size_t> done =
      FollowTimetable(table, [](size_t, size_t, std::optional<size_t>) {});
  for (size_t stage = 0; stage < table.size(); ++stage) {
    if (done[stage] == table[stage].size()) continue;
    const Action& action = table[stage][done[stage]];
    const size_t source = *SourceOf(action, stage, table.size());
    // The source has it ahead, for it does every action once; so it waits as well.
    return absl::InvalidArgumentError(
        absl::StrCat("stage ", stage, " waits for ever for ", TextOf(action), " of stage ", source,
                     ", which waits itself, to do ", TextOf(table[source][done[source]])));
  }
  return absl::OkStatus();
}

int64_t MostInFlight(std::span<const Action> actions) {
  int64_t now = 0, most = 0;
  for (const Action& action : actions) {
    now += action.pass == Pass::kForward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

Simulation Simulate(const Timetable& table, std::span<const StageSeconds> seconds,
                    double transfer) {
  Simulation result;
  result.stages.resize(table.size());
  double work = 0;
  FollowTimetable(table, [&](size_t stage, size_t place, std::optional<size_t> input) {
    const Action& action = table[stage][place];
    const bool forward = action.pass == Pass::kForward;
    const double duration = forward ? seconds[stage].forward : seconds[stage].backward;
    std::vector<TimedAction>& own = result.stages[stage];
    double begin = own.empty() ? 0 : own.back().end;
    if (input.has_value()) {
      const size_t source = *SourceOf(action, stage, table.size());
      begin = std::max(begin, result.stages[source][*input].end + transfer);
    }
    own.push_back({action, begin, begin + duration});
    result.makespan = std::max(result.makespan, begin + duration);
    work += duration;
  });
  const double whole = static_cast<double>(table.size()) * result.makespan;
  result.bubble = whole > 0 ? 1 - work / whole : 0;
  return result;
}

}  // namespace tutti::parallel
