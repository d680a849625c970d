#include "spec/flow/step_scope.h"

#include "absl/strings/strip.h"
#include "spec/command/job_data.h"
#include "spec/text/expressions.h"

namespace tutti::spec {

std::string NameBehind(absl::string_view expression, absl::string_view prefix) {
  return absl::ConsumePrefix(&expression, prefix) ? std::string(expression) : "";
}

std::optional<std::string> ValueOf(absl::string_view expression, const Scope& scope) {
  const auto found = scope.pipeline.inputs.find(NameBehind(expression, "parent.inputs."));
  if (found == scope.pipeline.inputs.end() || scope.open.contains(found->first)) return {};
  const Input& input = found->second;
  if (input.absent || IsPathType(input.type)) return {};
  return input.literal;
}

std::shared_ptr<const YamlNode> WithValues(const std::shared_ptr<const YamlNode>& node,
                                           const Scope& scope) {
  auto replaced =
      ReplaceExpressions(node, [&](absl::string_view body) { return ValueOf(body, scope); });
  const YamlNode::Entry* component = FindValue(*node, "component");
  const bool has_own = component != nullptr && FindEntry(*component->value, "jobs") != nullptr;
  if (!has_own) return replaced;
  YamlNode step = *replaced;
  for (YamlNode::Entry& entry : step.entries) {
    if (entry.key == "component") entry.value = component->value;
  }
  return std::make_shared<const YamlNode>(std::move(step));
}

Bindable BindableFor(const std::string& step, const Scope& scope) {
  Bindable names{.steps = scope.steps};
  for (const auto& [name, input] : scope.pipeline.inputs) names.inputs.push_back(name);
  for (const auto& [name, output] : scope.pipeline.outputs) names.outputs.push_back(name);
  names.steps.erase(step);
  return names;
}

}  // namespace tutti::spec
