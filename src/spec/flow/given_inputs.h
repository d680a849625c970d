// Combines the inputs that a step or a sweep is given with the definitions of its component, if it
// has one. Inside the room spec only.
#pragma once

#include <map>
#include <string>

#include "spec/command/command_reader.h"
#include "spec/flow/component_file.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// An input that is bound. What is known of it at submission stands in `input`.
struct BoundInput {
  Input input;       // type empty: as that of what it is bound to
  std::string from;  // "inputs.X" or "jobs.S.outputs.O"; empty: `input` is the value
};
using BoundInputs = std::map<std::string, BoundInput>;

// Has what a step, or a sweep that stands alone, gives to what it runs.
struct Given {
  const YamlNode::Entry* inputs = nullptr;
  const YamlNode::Entry* outputs = nullptr;
  const YamlNode::Entry* search_space = nullptr;  // of a sweep
  BoundInputs bound;
  const Source& source;  // of the step
  std::string what;      // "step \"train\""
  int line = 0;
  // Where the values of inputs stand that are the pipeline's own values ("job.yml:5"), by the
  // input's name.
  std::map<std::string, std::string> values_from = {};
};

// Returns the inputs of an inline job: what is given.
std::map<std::string, Input> InputsOf(const Given& given);

// Returns the inputs of a component, by its section `definitions` (may be null), with the values
// that are given. What is wrong with the definitions goes to `of_component`.
std::map<std::string, Input> InputsOf(const Given& given, const YamlNode::Entry* definitions,
                                      const ComponentFile& component, Diagnostics& of_component);

}  // namespace tutti::spec
