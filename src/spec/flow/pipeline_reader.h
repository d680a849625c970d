// Reads pipeline jobs and pipeline components (Azure ML's schemas). Inside the room spec only.
#pragma once

#include "spec/command/command_reader.h"
#include "spec/flow/component_file.h"
#include "spec/flow/given_inputs.h"
#include "spec/flow/step_scope.h"
#include "spec/types/job.h"

namespace tutti::spec {

JobSpec ReadPipelineJob(const Source& source);

// Reads a pipeline as a step of another. `depth`: how many are around it.
JobSpec ReadPipelineComponent(const ComponentFile& component, const Given& given,
                              const Scope& scope);

}  // namespace tutti::spec
