// Makes the job of a sweep's trial: which values it has, what it runs, what is kept of it. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "platform/flow/next_of_sweep.h"
#include "platform/store/store.h"
#include "spec/types/job.h"

namespace tutti::service {

// Returns the seed of the sweep's samplers: its own, or one that follows from its id.
uint64_t SeedOf(const store::Job& sweep);

// Returns the values that a trial was given, one for each parameter of its sweep.
flow::Values ValuesOf(const spec::Sweep& sweep, const spec::JobSpec& trial);

// Converts a trial's best metric to what store::TrialRecord has of it, and back.
std::optional<double> CostOf(const spec::Sweep& sweep, std::optional<double> metric);
std::optional<double> MetricOf(const spec::Sweep& sweep, std::optional<double> cost);

// Returns trial `number` of the sweep as a command job.
spec::JobSpec TrialSpec(const spec::JobSpec& sweep, int number, const flow::Values& values);

}  // namespace tutti::service
