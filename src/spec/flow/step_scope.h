// Defines what a pipeline gives to its steps, and puts the values of the pipeline's inputs into
// their text. Inside the room spec only.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "spec/text/unbound.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/job.h"

namespace tutti::spec {

struct Scope {
  const JobSpec& pipeline;  // its inputs, outputs and experiment
  // The pipeline's inputs whose value only the result of another step can tell.
  const std::set<std::string>& open;
  std::string compute;  // of steps that name none
  int depth = 0;        // pipelines around it
  // The steps beside it with their outputs, for the right name in errors (unbound.h).
  std::map<std::string, std::vector<std::string>> steps = {};
};

// Returns "x" for "parent.inputs.x", if the rest is `prefix`; "" otherwise.
std::string NameBehind(absl::string_view expression, absl::string_view prefix);

// Returns the value of an input of the pipeline ("parent.inputs.x"), where it is one and is known.
std::optional<std::string> ValueOf(absl::string_view expression, const Scope& scope);

// Returns a step with such values in place of ${{parent.inputs.x}}. In a pipeline that the step
// holds in place these are the inputs of that one, and stay.
std::shared_ptr<const YamlNode> WithValues(const std::shared_ptr<const YamlNode>& node,
                                           const Scope& scope);

// Returns what `step` can be bound to.
Bindable BindableFor(const std::string& step, const Scope& scope);

}  // namespace tutti::spec
