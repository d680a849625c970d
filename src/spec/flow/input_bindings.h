// Reads what binds the inputs of a step to the pipeline's inputs and to outputs of other steps.
// Inside the room spec only.
#pragma once

#include <map>
#include <string>

#include "spec/flow/given_inputs.h"
#include "spec/flow/step_scope.h"
#include "spec/text/yaml_tree.h"

namespace tutti::spec {

// Returns where the values stand ("job.yml:5") of those of a step's inputs that its file takes from
// the pipeline's own values; by the input's name.
std::map<std::string, std::string> LocationsOfValues(const YamlNode& step, const Scope& scope);

// Returns what the section `inputs` binds of the step `name`, whose `source` and `what` are given.
// A value that looks like a binding and is none is reported as one error and then counts as bound
// to nothing. Whether the other steps have such outputs is not checked yet.
BoundInputs ReadInputBindings(const Given& given, const std::string& name, const Scope& scope);

}  // namespace tutti::spec
