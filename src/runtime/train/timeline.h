// Timeline measures where the time of a run goes: laps, which are the parts of steps and what lies
// between them, and the trace that they are kept in where one is wanted (report/trace.h).
// Thread-compatible; the communicator's thread adds to the trace beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "runtime/comm/communicator.h"
#include "runtime/parallel/lap.h"
#include "runtime/parallel/pipeline/timetable.h"
#include "runtime/parallel/strategy.h"
#include "runtime/train/report/meter.h"
#include "runtime/train/report/trace.h"

namespace tutti::train {

class Timeline {
 public:
  // `trace`: the file that gets it; empty: none is wanted.
  explicit Timeline(std::filesystem::path trace);

  // Returns the communicator, with its collectives in the trace.
  std::unique_ptr<comm::Communicator> Watch(std::unique_ptr<comm::Communicator> communicator);
  // Returns what is told of the passes of micro-batches, for the trace; null: nobody asks.
  std::function<void(const parallel::Action& action, double seconds)> WatchPasses();
  // Writes an empty trace: a place that cannot be written to is said now, and not after the last
  // step.
  absl::Status Open() const;
  // Begins: laps count from here, on all ranks from the same moment.
  absl::Status Begin(parallel::Strategy& strategy, base::Deadline deadline);

  // Returns the seconds since the last lap.
  double Lap();
  // Ends a lap that no step counts as its own; returns its seconds.
  double Leave(SpanKind kind, int64_t step);
  // Adds a step: the last laps were these parts of it.
  void AddStep(int64_t step, const StepParts& times);

  // Writes all ranks' into the file, by rank 0.
  absl::Status Write(parallel::Strategy& strategy, base::Deadline deadline) const;

 private:
  const std::filesystem::path path_;
  const std::shared_ptr<Trace> trace_;  // null: none is wanted
  parallel::LapTimer timer_;
  absl::Duration lapped_ = absl::ZeroDuration();  // the sum of all laps, from SteadyNow on
};

}  // namespace tutti::train
