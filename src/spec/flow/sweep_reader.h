// Reads sweep jobs (Azure ML's sweepJob schema), alone and as a pipeline's step. Inside the room
// spec only.
#pragma once

#include "spec/command/command_reader.h"
#include "spec/flow/given_inputs.h"
#include "spec/types/job.h"

namespace tutti::spec {

JobSpec ReadSweepJob(const Source& source);

// Reads what a sweep has beside its identity: trial, search space, objective and all. `sweep` reads
// the mapping that `given` comes from.
void ReadSweep(CommandReader& sweep, const Given& given, JobSpec& spec);

}  // namespace tutti::spec
