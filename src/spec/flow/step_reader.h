// Reads the steps of a pipeline: inline jobs, components, sweeps and pipelines of their own, with
// what binds them to the pipeline's inputs and to each other. Inside the room spec only.
#pragma once

#include "spec/command/command_reader.h"
#include "spec/flow/component_file.h"
#include "spec/flow/given_inputs.h"
#include "spec/flow/step_scope.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Reads a pipeline as a step of another: pipeline_reader.h has it, which reads its own steps by
// ReadStep.
using ReadPipelineStep = JobSpec (*)(const ComponentFile& component, const Given& given,
                                     const Scope& scope);

// Reads a step; its entry in `jobs` stands in `source`. Bindings to siblings are not checked yet.
Step ReadStep(const YamlNode::Entry& entry, const Source& source, const Scope& scope,
              ReadPipelineStep read_pipeline);

}  // namespace tutti::spec
