// Reads the steps of a pipeline: inline jobs, components, sweeps and pipelines of their own, with
// what binds them to the pipeline's inputs and to each other. Inside the room spec only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "spec/command_reader.h"
#include "spec/component_file.h"
#include "spec/job.h"

namespace tutti::spec {

// What a pipeline gives to its steps.
struct Scope {
  const JobSpec& pipeline;  // its inputs, outputs and experiment
  // Those of its inputs whose value only the result of another step can tell.
  const std::set<std::string>& open;
  std::string compute;  // of steps that name none
  int depth = 0;        // pipelines around it
  // The steps beside it with their outputs, for the right name in errors (unbound.h).
  std::map<std::string, std::vector<std::string>> steps = {};
};

// An input that is bound. What is known of it at submission stands in `input`.
struct BoundInput {
  Input input;       // type empty: as that of what it is bound to
  std::string from;  // "inputs.X" or "jobs.S.outputs.O"; empty: `input` is the value
};
using BoundInputs = std::map<std::string, BoundInput>;

// What a step, or a sweep that stands alone, gives to what it runs.
struct Given {
  const YamlNode::Entry* inputs = nullptr;
  const YamlNode::Entry* outputs = nullptr;
  const YamlNode::Entry* search_space = nullptr;  // of a sweep
  BoundInputs bound;
  const Source& source;  // of the step
  std::string what;      // "step \"train\""
  int line = 0;
  // Of the inputs that are values of the pipeline's: where those stand, "job.yml:5".
  std::map<std::string, std::string> values_from = {};
};

// The inputs of an inline job: what is given.
std::map<std::string, Input> InputsOf(const Given& given);

// The inputs of a component, by its section `definitions` (may be null), with the values that are
// given. What is wrong with the definitions goes to `of_component`.
std::map<std::string, Input> InputsOf(const Given& given, const YamlNode::Entry* definitions,
                                      const ComponentFile& component, Diagnostics& of_component);

// The output of the pipeline that an entry of `outputs` is bound to, alone or as its path; "" if to
// none.
std::string BoundOutput(const YamlNode::Entry& entry);

// What the section `outputs` says over those that the component of `what` has.
void ReadOutputsOver(const YamlNode::Entry& section, absl::string_view what,
                     std::map<std::string, Output>& outputs, Diagnostics& diagnostics);

// Errors for what is bound in the section `outputs` of a job that no pipeline is around.
void RefuseBoundOutputs(const YamlNode::Entry& section, Diagnostics& diagnostics);

// A step; its entry in `jobs` stands in `source`. Bindings to siblings are not checked yet.
Step ReadStep(const YamlNode::Entry& entry, const Source& source, const Scope& scope);

}  // namespace tutti::spec
