#include "spec/flow/input_bindings.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/closest.h"
#include "spec/command/job_data.h"
#include "spec/text/expressions.h"
#include "spec/text/unbound.h"

namespace tutti::spec {
namespace {

// The section `inputs` of a step; nullptr if it has none that can be read.
const YamlNode::Entry* SectionOf(const YamlNode& step) {
  const YamlNode::Entry* section = FindValue(step, "inputs");
  const bool is_mapping = section != nullptr && section->value->kind == YamlNode::Kind::kMapping;
  return is_mapping ? section : nullptr;
}

// Reads the bindings of one step.
class BindingReader {
 public:
  BindingReader(const Given& given, const std::string& name, const Scope& scope)
      : given_(given), name_(name), scope_(scope) {}

  BoundInputs Read(const YamlNode& section) {
    for (const YamlNode::Entry& entry : section.entries) {
      const YamlNode::Entry* path = FindValue(*entry.value, "path");
      const YamlNode& text = path == nullptr ? *entry.value : *path->value;
      const std::string body = WholeExpression(text.scalar);
      if (absl::StartsWith(body, "parent.")) {
        Bind(entry, body);
      } else {
        RefuseUnbound(entry);
      }
    }
    return std::move(bound_);
  }

 private:
  void Error(int line, absl::string_view message) {
    given_.source.diagnostics.Error(line, absl::StrCat(given_.what, " ", message));
  }

  // Reports an input that looks like a binding and is none. It is entered with an empty binding, so
  // that no further error is reported for it.
  void RefuseUnbound(const YamlNode::Entry& entry) {
    const YamlNode::Entry* faulty = nullptr;
    if (!BindingIn(entry.value->scalar).empty()) faulty = &entry;
    for (const char* key : {"path", "value", "default"}) {
      const YamlNode::Entry* part = FindValue(*entry.value, key);
      if (part != nullptr && !BindingIn(part->value->scalar).empty()) faulty = part;
    }
    if (faulty == nullptr) return;
    const std::string& written = faulty->value->scalar;
    const std::string body = BindingIn(written);
    const bool is_told_later =
        absl::StartsWith(body, "search_space.") ||
        (absl::StartsWith(body, "parent.") && absl::StrContains(written, "${{"));
    if (is_told_later) return;  // by what reads the value
    BoundInput& input = bound_[entry.key];
    input.input.location = {given_.source.diagnostics.file_name(), faulty->line};
    input.input.type = input.input.mode = "";
    Error(faulty->line,
          absl::StrCat("gives input \"", entry.key.substr(0, 80), "\" ", written.substr(0, 120),
                       ", which is no binding", MeantInput(body, BindableFor(name_, scope_))));
  }

  void Bind(const YamlNode::Entry& entry, const std::string& body) {
    BoundInput input;
    input.input.location = {given_.source.diagnostics.file_name(), entry.line};
    input.input.type = input.input.mode = "";
    if (const YamlNode::Entry* type = FindValue(*entry.value, "type")) {
      input.input.type = type->value->scalar;
    }
    if (const YamlNode::Entry* mode = FindValue(*entry.value, "mode")) {
      input.input.mode = InputModeOf(mode->value->scalar);
    }
    if (absl::StartsWith(body, "parent.jobs.")) {
      input.from = NameBehind(body, "parent.");
      bound_[entry.key] = input;
      return;
    }
    const std::string name = NameBehind(body, "parent.inputs.");
    const auto found = scope_.pipeline.inputs.find(name);
    if (found == scope_.pipeline.inputs.end()) {
      bound_[entry.key] = input;
      return Error(entry.line, UnknownParent(body, name));
    }
    if (scope_.open.contains(name)) input.from = absl::StrCat("inputs.", name);
    const Input own = input.input;
    input.input = found->second;
    if (input.input.location.line == 0) input.input.location = own.location;
    if (!own.type.empty()) input.input.type = own.type;
    if (!own.mode.empty()) input.input.mode = own.mode;
    bound_[entry.key] = input;
  }

  std::string UnknownParent(const std::string& body, const std::string& name) const {
    if (name.empty()) {
      return absl::StrCat("names ${{", body.substr(0, 120), "}}, which is not understood",
                          MeantInput(body, BindableFor(name_, scope_)));
    }
    std::vector<absl::string_view> names;
    for (const auto& [key, input] : scope_.pipeline.inputs) names.push_back(key);
    return absl::StrCat("names ${{parent.inputs.", name.substr(0, 80),
                        "}}, which the pipeline does not have",
                        base::DidYouMean(name.substr(0, 80), names));
  }

  const Given& given_;
  const std::string& name_;
  const Scope& scope_;
  BoundInputs bound_;
};

}  // namespace

std::map<std::string, std::string> LocationsOfValues(const YamlNode& step, const Scope& scope) {
  std::map<std::string, std::string> places;
  const YamlNode::Entry* section = SectionOf(step);
  if (section == nullptr) return places;
  for (const YamlNode::Entry& entry : section->value->entries) {
    const std::string body = WholeExpression(entry.value->scalar);
    if (!ValueOf(body, scope)) continue;
    const SourceLocation& location =
        scope.pipeline.inputs.at(NameBehind(body, "parent.inputs.")).location;
    places[entry.key] = absl::StrCat(location.file, ":", location.line);
  }
  return places;
}

BoundInputs ReadInputBindings(const Given& given, const std::string& name, const Scope& scope) {
  const YamlNode::Entry* section = SectionOf(given.source.root);
  return section == nullptr ? BoundInputs()
                            : BindingReader(given, name, scope).Read(*section->value);
}

}  // namespace tutti::spec
