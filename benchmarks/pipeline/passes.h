// What the stages of a pipeline did and when, beside what the schedule's table promises.
// Thread-compatible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/parallel/pipeline/timetable.h"
#include "runtime/train/report/trace.h"

namespace tutti {

// By stage: its passes in the order in which they ended, as many in each step.
using StagePasses = std::vector<std::vector<train::TraceSpan>>;

// Returns those of one step.
inline StagePasses PassesOfStep(const StagePasses& all, size_t step, size_t steps) {
  StagePasses one;
  for (const auto& stage : all) {
    const auto count = static_cast<ptrdiff_t>(stage.size() / steps);
    const auto begin = stage.begin() + count * static_cast<ptrdiff_t>(step);
    one.emplace_back(begin, begin + count);
  }
  return one;
}

struct StepMeasure {
  double makespan = 0;  // seconds from the first pass's begin to the last one's end
  double bubble = 0;    // the part of the stages' time in which they pass nothing
};

inline StepMeasure MeasureOf(const StagePasses& step) {
  double begin = std::numeric_limits<double>::max(), end = 0, work = 0;
  for (const auto& stage : step) {
    for (const train::TraceSpan& span : stage) {
      begin = std::min(begin, span.begin);
      end = std::max(end, span.begin + span.seconds);
      work += span.seconds;
    }
  }
  const double makespan = end - begin;
  return {makespan, 1 - work / (static_cast<double>(step.size()) * makespan)};
}

inline double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The medians of all its passes in either direction.
inline parallel::StageSeconds SecondsOf(const std::vector<train::TraceSpan>& stage) {
  std::vector<double> forward, backward;
  for (const train::TraceSpan& span : stage) {
    const bool is_forward =
        static_cast<train::SpanKind>(span.kind) == train::SpanKind::kForwardPass;
    (is_forward ? forward : backward).push_back(span.seconds);
  }
  return {MedianOf(std::move(forward)), MedianOf(std::move(backward))};
}

// A simulation's passes as a trace has them.
inline StagePasses PassesOf(const parallel::Simulation& simulation) {
  StagePasses passes;
  for (const auto& stage : simulation.stages) {
    auto& spans = passes.emplace_back();
    for (const parallel::TimedAction& timed : stage) {
      const auto kind = timed.action.pass == parallel::Pass::kForward
                            ? train::SpanKind::kForwardPass
                            : train::SpanKind::kBackwardPass;
      spans.push_back({static_cast<double>(kind), timed.begin, timed.end - timed.begin,
                       static_cast<double>(timed.action.micro_batch)});
    }
  }
  return passes;
}

}  // namespace tutti
