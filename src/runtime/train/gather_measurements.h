// Gathers on rank 0 what each rank measured. Every rank makes the same calls.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/parallel/strategy.h"
#include "runtime/train/report/meter.h"
#include "runtime/train/report/trace.h"

namespace tutti::train {

// Returns `own` of every rank, in rank order; one small all-reduce.
absl::StatusOr<std::vector<StepParts>> GatherParts(const StepParts& own,
                                                   parallel::Strategy& strategy,
                                                   base::Deadline deadline);

// Returns what the strategies of all ranks tell of their exchange (Strategy::Figures), likewise.
absl::StatusOr<std::vector<std::vector<parallel::Figure>>> GatherFigures(
    parallel::Strategy& strategy, base::Deadline deadline);

// Takes the moment at which the last rank called it for the trace's beginning, up to the time that
// an all-reduce of eight bytes takes: nodes have clocks of their own.
absl::Status BeginTogether(Trace& trace, parallel::Strategy& strategy, base::Deadline deadline);

// Returns the latest spans of every rank, on rank 0; empty elsewhere. An all-reduce a rank.
absl::StatusOr<std::vector<std::vector<TraceSpan>>> GatherTrace(const Trace& trace,
                                                                parallel::Strategy& strategy,
                                                                base::Deadline deadline);

}  // namespace tutti::train
