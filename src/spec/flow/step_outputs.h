// Reads the outputs of steps: which they have, and which of the pipeline's outputs they are. Inside
// the room spec only.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "spec/flow/given_inputs.h"
#include "spec/flow/step_scope.h"
#include "spec/text/diagnostics.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Returns the output of the pipeline that an entry of `outputs` is bound to, alone or as its path;
// "" if to none.
std::string BoundOutput(const YamlNode::Entry& entry);

// Reads the outputs of an inline step, by the section that is given; those that are bound are as
// the pipeline's.
std::map<std::string, Output> ReadStepOutputs(const Given& given, const Scope& scope);

// Reads what the section `outputs` says over those that the component of `what` has.
void ReadOutputsOver(const YamlNode::Entry& section, absl::string_view what,
                     std::map<std::string, Output>& outputs, const Source& source);

// Returns the outputs of the pipeline that those of the step `name` are; errors for what looks like
// a binding and is none.
std::map<std::string, std::string> ReadOutputBindings(const Given& given, const std::string& name,
                                                      const Scope& scope);

// Reports errors for what is bound in the section `outputs` of a job that no pipeline is around.
void RefuseBoundOutputs(const YamlNode::Entry& section, Diagnostics& diagnostics);

}  // namespace tutti::spec
