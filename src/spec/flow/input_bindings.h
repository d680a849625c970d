// Reads what binds the inputs of a step to the pipeline's inputs and to outputs of other steps.
// Inside the room spec only.
#pragma once

#include <map>
#include <string>

#include "spec/flow/given_inputs.h"
#include "spec/flow/step_scope.h"
#include "spec/text/yaml_tree.h"

namespace tutti::spec {

// Of the inputs of a step, as its file has it, that are values of the pipeline's: where those
// stand, "job.yml:5".
std::map<std::string, std::string> LocationsOfValues(const YamlNode& step, const Scope& scope);

// What the section `inputs` binds of the step `name`, whose `source` and `what` are given. Of what
// looks like a binding and is none nothing is said but an error: it is bound to nothing. That the
// other steps have such outputs is not checked yet.
BoundInputs ReadInputBindings(const Given& given, const std::string& name, const Scope& scope);

}  // namespace tutti::spec
