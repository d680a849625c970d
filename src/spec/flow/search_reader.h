// Reads what a sweep says of its search: the space, how it is sampled, the objective, when trials
// are stopped, the limits. Inside the room spec only.
#pragma once

#include "spec/command/command_reader.h"
#include "spec/flow/given_inputs.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Fills spec.sweep from the keys of `sweep`, all but the trial.
void ReadSearch(CommandReader& sweep, const Given& given, JobSpec& spec);

}  // namespace tutti::spec
