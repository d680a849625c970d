// Finds texts in a step's inputs or outputs that look like a binding and are none: ${{inputs.x}},
// ${{jobs.a.outputs.b}}, ${{parents.inputs.x}}, {{parent.inputs.x}}. The shell would get it as it
// is. Inside the room spec only. Pure functions, safe on hostile text; thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "spec/text/yaml_tree.h"

namespace tutti::spec {

// Lists what the steps of a pipeline can be bound to.
struct Bindable {
  std::vector<std::string> inputs;   // of the pipeline
  std::vector<std::string> outputs;  // of the pipeline
  // Maps each step to the outputs that it writes in the pipeline's file; its component may have
  // more.
  std::map<std::string, std::vector<std::string>> steps;
};

// Returns the steps in a pipeline's `jobs`, with their outputs.
std::map<std::string, std::vector<std::string>> OutputsOfSteps(const YamlNode& jobs);

// Returns the first ${{…}} of `text`, without its braces; one that is not closed or lacks its
// dollar or a brace, if `text` is nothing else and names inputs, outputs, jobs or the parent. "" if
// there is none.
std::string BindingIn(absl::string_view text);

// Says which input of a step was meant by `body`: ` (did you mean "${{parent.inputs.x}}"?)`, else
// what may be written and what there is. MeantOutput says the same of an output.
std::string MeantInput(absl::string_view body, const Bindable& names);
std::string MeantOutput(absl::string_view body, const Bindable& names);

}  // namespace tutti::spec
