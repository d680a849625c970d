#include "spec/flow/given_inputs.h"

#include <memory>
#include <set>

#include "absl/strings/match.h"
#include "spec/command/job_data.h"

namespace tutti::spec {
namespace {

bool IsOptional(const YamlNode::Entry& definition) {
  const YamlNode::Entry* optional = FindValue(*definition.value, "optional");
  return optional != nullptr && absl::EqualsIgnoreCase(optional->value->scalar, "true");
}

// An input of the pipeline that has no value leaves the component's default, if there is one.
bool TakesDefault(const BoundInput& bound, const YamlNode::Entry* definition) {
  return bound.input.absent && definition != nullptr &&
         (FindValue(*definition->value, "default") != nullptr || !IsOptional(*definition));
}

}  // namespace

std::map<std::string, Input> InputsOf(const Given& given) {
  std::map<std::string, Input> inputs;
  if (given.inputs != nullptr) {
    YamlNode::Entry plain = *given.inputs;
    auto node = std::make_shared<YamlNode>(*plain.value);
    std::erase_if(node->entries,
                  [&](const auto& entry) { return given.bound.contains(entry.key); });
    plain.value = node;
    inputs = ReadInputSection(plain, given.source.context, given.source.diagnostics);
  }
  for (const auto& [name, bound] : given.bound) {
    Input& input = inputs[name] = bound.input;
    if (input.mode.empty()) input.mode = "ro_mount";
  }
  return inputs;
}

std::map<std::string, Input> InputsOf(const Given& given, const YamlNode::Entry* definitions,
                                      const ComponentFile& component, Diagnostics& of_component) {
  std::set<std::string> elsewhere;
  const auto definition = [&](const std::string& name) {
    return definitions == nullptr ? nullptr : FindValue(*definitions->value, name);
  };
  for (const auto& [name, bound] : given.bound) {
    if (!TakesDefault(bound, definition(name))) elsewhere.insert(name);
  }
  YamlNode::Entry left{"inputs", given.line, nullptr};
  if (given.inputs != nullptr) {
    CheckIsMapping(*given.inputs, given.source.diagnostics);
    auto node = std::make_shared<YamlNode>(*given.inputs->value);
    for (YamlNode::Entry& entry : node->entries) {
      if (given.bound.contains(entry.key)) entry.value = std::make_shared<YamlNode>();
      if (const auto from = given.values_from.find(entry.key); from != given.values_from.end()) {
        entry.defined = from->second;
      }
    }
    left.value = node;
  }
  std::map<std::string, Input> inputs =
      ReadComponentInputs(component, definitions, given.inputs == nullptr ? nullptr : &left,
                          elsewhere, given.line, given.source, of_component);
  for (const std::string& name : elsewhere) {
    Input& input = inputs[name] = given.bound.at(name).input;
    const YamlNode::Entry* said = definition(name);
    const YamlNode::Entry* type = said == nullptr ? nullptr : FindValue(*said->value, "type");
    const YamlNode::Entry* mode = said == nullptr ? nullptr : FindValue(*said->value, "mode");
    if (input.type.empty() && type != nullptr) input.type = type->value->scalar;
    if (input.mode.empty())
      input.mode = mode == nullptr ? "ro_mount" : InputModeOf(mode->value->scalar);
  }
  return inputs;
}

}  // namespace tutti::spec
