// Reads pipeline jobs and pipeline components (Azure ML's schemas). Inside the room spec only.
#pragma once

#include "spec/command_reader.h"
#include "spec/component_file.h"
#include "spec/given_inputs.h"
#include "spec/job.h"
#include "spec/step_scope.h"

namespace tutti::spec {

JobSpec ReadPipelineJob(const Source& source);

// A pipeline as a step of another. `depth`: how many are around it.
JobSpec ReadPipelineComponent(const ComponentFile& component, const Given& given,
                              const Scope& scope);

}  // namespace tutti::spec
