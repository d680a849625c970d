// Reads the outputs of steps: which they have, which of the pipeline's outputs they are, and where
// in a store those are brought to. Inside the room spec only.
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

// In all pipelines of the tree: an output of a step that is bound to one of its pipeline's gets
// that one's place. Call it once the file has been read. An error for each output of a sweep's
// trials whose place is the same for all of them.
void SpreadOutputPlaces(JobSpec& job, Diagnostics& diagnostics);

}  // namespace tutti::spec
