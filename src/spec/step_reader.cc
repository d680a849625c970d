#include "spec/step_reader.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/closest.h"
#include "spec/expressions.h"
#include "spec/job_data.h"
#include "spec/job_scale.h"
#include "spec/other_kinds.h"
#include "spec/pipeline_reader.h"
#include "spec/sweep_reader.h"
#include "spec/unbound.h"

namespace tutti::spec {
namespace {

using Node = std::shared_ptr<const YamlNode>;

constexpr std::array<absl::string_view, 3> kStepTypes = {"command", "sweep", "pipeline"};

// "parent.inputs.x" -> "x", if the rest is `prefix`; "" otherwise.
std::string NameBehind(absl::string_view expression, absl::string_view prefix) {
  return absl::ConsumePrefix(&expression, prefix) ? std::string(expression) : "";
}

// The value of an input of the pipeline, where it is one and is known.
std::optional<std::string> Literal(const Scope& scope, absl::string_view expression) {
  const auto found = scope.pipeline.inputs.find(NameBehind(expression, "parent.inputs."));
  if (found == scope.pipeline.inputs.end() || scope.open.contains(found->first)) return {};
  const Input& input = found->second;
  if (input.absent || IsPathType(input.type)) return {};
  return input.literal;
}

// The tree with the values of the pipeline's inputs in place of ${{parent.inputs.x}}.
Node WithLiterals(const Node& node, const Scope& scope) {
  return ReplaceExpressions(node, [&](absl::string_view body) { return Literal(scope, body); });
}

// An output that the component of `what` has; an error otherwise.
bool CheckOutput(const YamlNode::Entry& entry, absl::string_view what,
                 const std::map<std::string, Output>& outputs, Diagnostics& diagnostics) {
  if (outputs.contains(entry.key)) return true;
  std::vector<absl::string_view> names;
  for (const auto& [name, output] : outputs) names.push_back(name);
  const absl::string_view name = absl::string_view(entry.key).substr(0, 80);
  diagnostics.Error(entry.line, absl::StrCat(what, " has no output \"", name, "\"",
                                             base::DidYouMean(name, names)));
  return false;
}

// Where an output of a step has what looks like a binding and is none, and what that is; line 0 if
// nowhere. ${{name}} and the like within an address are Azure ML's, and have no effect here.
std::pair<int, std::string> UnboundOutput(const YamlNode::Entry& entry) {
  const YamlNode::Entry* path = FindValue(*entry.value, "path");
  const YamlNode::Entry& at = path == nullptr ? entry : *path;
  const std::string& written = at.value->scalar;
  const std::string body = BindingIn(written);
  const bool is_whole = WholeExpression(written) == body || !absl::StrContains(written, "${{");
  if (!is_whole || !absl::StrContains(body, '.') || !BoundOutput(entry).empty()) return {0, ""};
  return {at.line, written};
}

// Reads one step: its bindings first, then what it runs.
class StepReader {
 public:
  StepReader(const YamlNode::Entry& entry, const Source& source, const Scope& scope)
      : entry_(entry),
        what_(absl::StrCat("step \"", absl::string_view(entry.key).substr(0, 80), "\"")),
        root_(WithLiterals(entry.value, scope)),
        source_{*root_, source.text, source.context, source.diagnostics},
        scope_(scope) {}

  Step Read() {
    step_.name = entry_.key;
    if (!IsJobName(step_.name)) {
      Error(entry_.line, "must have a name of letters, digits, \"-\" and \"_\"");
    }
    const std::string type = Type();
    if (type.empty()) return std::move(step_);
    step_.job.file_name = source_.diagnostics.file_name();
    step_.job.experiment_name = scope_.pipeline.experiment_name;
    step_.job.compute = scope_.compute;
    step_.job.code_line = step_.job.command_line = entry_.line;
    const std::string experiment = step_.job.experiment_name;
    Given given{.source = source_, .what = what_, .line = entry_.line};
    NoteValues(given);
    if (type != "pipeline" || FindValue(*root_, "component") != nullptr) TakeInputs(given);
    ReadByType(type, given);
    step_.job.experiment_name = experiment;
    ReadOutputBindings();
    for (const auto& [name, bound] : given.bound) {
      if (!bound.from.empty()) step_.inputs_from[name] = bound.from;
    }
    return std::move(step_);
  }

 private:
  void Error(int line, absl::string_view message) {
    source_.diagnostics.Error(line, absl::StrCat(what_, " ", message));
  }

  // command, sweep or pipeline; "" with an error for what is none.
  std::string Type() {
    if (root_->kind != YamlNode::Kind::kMapping) {
      Error(entry_.line, absl::StrCat("must be a mapping, but is ", KindName(*root_)));
      return "";
    }
    const YamlNode::Entry* written = FindValue(*root_, "type");
    if (written == nullptr) return TypeByKeys();
    const std::string type = absl::AsciiStrToLower(written->value->scalar);
    const auto is = [&](absl::string_view known) { return type == known; };
    if (std::any_of(kStepTypes.begin(), kStepTypes.end(), is)) return type;
    Error(written->line,
          !NotRunBecause(type).empty()
              ? absl::StrCat("is of type ", type, ", which is not run: ", NotRunBecause(type))
              : absl::StrCat("is of unknown type \"", type.substr(0, 80), "\"",
                             base::DidYouMean(type.substr(0, 80), kStepTypes)));
    return "";
  }

  // A step that says no type has that of its component.
  std::string TypeByKeys() {
    if (FindValue(*root_, "trial") != nullptr) return "sweep";
    const ComponentFile* component = Component();
    return component == nullptr ? "command" : TypeOf(*component);
  }

  // Reads the step's component, once. nullptr if it names none or, with an error, one that cannot
  // be had.
  const ComponentFile* Component() {
    const YamlNode::Entry* entry = FindValue(*root_, "component");
    if (entry != nullptr && !component_is_read_) {
      component_is_read_ = true;
      component_ = FindComponent(*entry, what_, source_, source_.diagnostics);
    }
    return component_ ? &*component_ : nullptr;
  }

  void ReadByType(const std::string& type, Given& given) {
    const bool has_component = FindValue(*root_, "component") != nullptr;
    if (type == "sweep") {
      CommandReader sweep(source_, what_, {"sweep", ""});
      ReadStepHead(sweep);
      sweep.ReadCompute("compute", step_.job);
      given.inputs = sweep.keys().Take("inputs");
      given.outputs = sweep.keys().Take("outputs");
      ReadSweep(sweep, given, step_.job);
      sweep.keys().Finish();
    } else if (!has_component && type == "pipeline") {
      Error(entry_.line, "has no component: name the pipeline's file");
    } else if (!has_component) {
      ReadInline(given);
    } else if (const ComponentFile* file = Component()) {
      ReadComponent(type, *file, given);
    }
  }

  void ReadStepHead(CommandReader& step) {
    std::string unused;
    for (const char* key : {"$schema", "type", "name", "experiment_name"}) {
      step.keys().Text(key, unused);
    }
    step_.job.display_name = entry_.key;
    step.keys().Text("display_name", step_.job.display_name);
    step.keys().Text("description", step_.job.description);
    step.keys().TextMap("tags", step_.job.tags);
  }

  void ReadInline(Given& given) {
    CommandReader step(source_, what_, {"command", ""});
    ReadStepHead(step);
    JobSpec& job = step_.job;
    step.ReadCommand(job);
    step.ReadVariables(job);
    step.ReadCode(job);
    step.ReadEnvironmentKey(job);
    step.ReadCompute("compute", job);
    given.inputs = step.keys().Take("inputs");
    step.keys().Take("outputs");
    job.inputs = InputsOf(given);
    WarnOfHost(*root_);
    ReadOwnOutputs();
    step.CheckReferences(job);
    ReadScale(step.keys(), job, source_.diagnostics);
    step.keys().Finish();
  }

  // What the component says, then what the step says over it.
  void ReadComponent(const std::string& type, const ComponentFile& file, Given& given) {
    CommandReader step(source_, what_, {"pipeline", "jobs.*."});
    step.keys().Take("component");
    for (const absl::string_view key : {"command", "code"}) {
      if (const YamlNode::Entry* own = step.keys().Take(key)) {
        Error(own->line, absl::StrCat("has a component, whose ", key, " it runs: leave \"", key,
                                      "\" out here, or write it in the component"));
      }
    }
    given.inputs = step.keys().Take("inputs");
    step.keys().Take("outputs");
    if (type == "pipeline") {
      Scope scope = scope_;
      JobSpec unused;
      unused.compute = scope.compute;
      step.ReadCompute("compute", unused);
      scope.compute = unused.compute;
      step_.job = ReadPipelineComponent(file, given, scope);
    } else {
      ReadCommandComponent(file, given);
    }
    ReadStepHead(step);
    JobSpec& job = step_.job;
    if (type != "pipeline") {
      step.ReadVariables(job);
      step.ReadEnvironmentKey(job);
      step.ReadCompute("compute", job);
      ReadScale(step.keys(), job, source_.diagnostics);
    }
    step.keys().Finish();
    ReadOwnOutputs();
  }

  void ReadCommandComponent(const ComponentFile& file, const Given& given) {
    Diagnostics inner(file.shown);
    const ReadContext below = source_.context.Beside(file.folder / "here", file.shown);
    CommandReader component({*file.root, file.text, below, inner}, file.name, {"component", ""});
    JobSpec& job = step_.job;
    job.file_name = file.shown;
    component.ReadComponentIdentity(job);
    component.ReadCommand(job);
    component.ReadVariables(job);
    component.ReadCode(job);
    component.ReadIncludes(job);
    component.ReadEnvironmentKey(job);
    job.outputs = ReadOutputs(component.keys(), inner, "component");
    job.inputs = InputsOf(given, component.keys().Take("inputs"), file, inner);
    component.CheckReferences(job);
    ReadScale(component.keys(), job, inner);
    component.keys().Finish();
    WarnOfHost(*file.root);
    source_.diagnostics.Add(entry_.line, inner);
  }

  // Where neither the step nor `component` says an environment. A component that is made known by
  // itself is no step yet.
  void WarnOfHost(const YamlNode& component) {
    const bool is_said = FindValue(*root_, "environment") || FindValue(component, "environment");
    if (is_said || scope_.steps.empty()) return;
    source_.diagnostics.Warning(entry_.line,
                                "a step without environment runs with what its node has "
                                "installed; if that is meant, write environment: host");
  }

  // outputs: what the step declares beside, or over, what its component has.
  void ReadOwnOutputs() {
    const YamlNode::Entry* section = FindValue(*root_, "outputs");
    if (section == nullptr) return;
    if (FindValue(*root_, "component") != nullptr) {
      ReadOutputsOver(*section, what_, step_.job.outputs, source_.diagnostics);
      return;
    }
    CheckIsMapping(*section, source_.diagnostics);
    for (const YamlNode::Entry& entry : section->value->entries) {
      if (!IsIdentifier(entry.key)) {
        Error(entry.line, absl::StrCat("has an output \"", entry.key.substr(0, 80),
                                       "\", whose name must be of letters, digits and \"_\""));
      } else {
        ReadOwnOutput(entry);
      }
    }
  }

  void ReadOwnOutput(const YamlNode::Entry& entry) {
    const std::string bound = BoundOutput(entry);
    const auto outer = scope_.pipeline.outputs.find(bound);
    Output& output = step_.job.outputs[entry.key];
    if (UnboundOutput(entry).first > 0) {
      // has been told
    } else if (bound.empty()) {
      output = ReadOutput(entry, source_.diagnostics);
    } else if (outer != scope_.pipeline.outputs.end()) {
      output = outer->second;
    }
  }

  void ReadOutputBindings() {
    const YamlNode::Entry* section = FindValue(*root_, "outputs");
    if (section == nullptr) return;
    std::vector<absl::string_view> names;
    for (const auto& [name, output] : scope_.pipeline.outputs) names.push_back(name);
    for (const YamlNode::Entry& entry : section->value->entries) {
      const std::string bound = BoundOutput(entry);
      if (scope_.pipeline.outputs.contains(bound)) {
        step_.outputs_to[entry.key] = bound;
      } else if (!bound.empty()) {
        Error(entry.line, absl::StrCat("names ${{parent.outputs.", bound.substr(0, 80),
                                       "}}, which the pipeline does not have",
                                       base::DidYouMean(bound.substr(0, 80), names)));
      } else if (const auto [line, written] = UnboundOutput(entry); line > 0) {
        Error(line, absl::StrCat("gives output \"", entry.key.substr(0, 80), "\" ",
                                 written.substr(0, 120), ", which is no binding",
                                 MeantOutput(BindingIn(written), Names())));
      }
    }
  }

  // Which inputs have got their values from the pipeline's.
  void NoteValues(Given& given) const {
    const YamlNode::Entry* section = FindValue(*entry_.value, "inputs");
    if (section == nullptr || section->value->kind != YamlNode::Kind::kMapping) return;
    for (const YamlNode::Entry& entry : section->value->entries) {
      const std::string body = WholeExpression(entry.value->scalar);
      if (!Literal(scope_, body)) continue;
      const Place& place = scope_.pipeline.inputs.at(NameBehind(body, "parent.inputs.")).place;
      given.values_from[entry.key] = absl::StrCat(place.file, ":", place.line);
    }
  }

  // Takes what is bound out of the step's inputs.
  void TakeInputs(Given& given) {
    const YamlNode::Entry* section = FindValue(*root_, "inputs");
    if (section == nullptr || section->value->kind != YamlNode::Kind::kMapping) return;
    for (const YamlNode::Entry& entry : section->value->entries) {
      const YamlNode::Entry* path = FindValue(*entry.value, "path");
      const YamlNode& text = path == nullptr ? *entry.value : *path->value;
      const std::string body = WholeExpression(text.scalar);
      if (absl::StartsWith(body, "parent.")) {
        Bind(entry, body, given.bound);
      } else {
        RefuseUnbound(entry, given.bound);
      }
    }
  }

  // Of what is bound to nothing, nothing else is said.
  void RefuseUnbound(const YamlNode::Entry& entry, BoundInputs& bound) {
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
    BoundInput& input = bound[entry.key];
    input.input.place = {source_.diagnostics.file_name(), faulty->line};
    input.input.type = input.input.mode = "";
    Error(faulty->line,
          absl::StrCat("gives input \"", entry.key.substr(0, 80), "\" ", written.substr(0, 120),
                       ", which is no binding", MeantInput(body, Names())));
  }

  Bindable Names() const {
    Bindable names{.steps = scope_.steps};
    for (const auto& [name, input] : scope_.pipeline.inputs) names.inputs.push_back(name);
    for (const auto& [name, output] : scope_.pipeline.outputs) names.outputs.push_back(name);
    names.steps.erase(entry_.key);
    return names;
  }

  void Bind(const YamlNode::Entry& entry, const std::string& body, BoundInputs& bound) {
    BoundInput input;
    input.input.place = {source_.diagnostics.file_name(), entry.line};
    input.input.type = input.input.mode = "";
    if (const YamlNode::Entry* type = FindValue(*entry.value, "type")) {
      input.input.type = type->value->scalar;
    }
    if (const YamlNode::Entry* mode = FindValue(*entry.value, "mode")) {
      input.input.mode = mode->value->scalar;
    }
    if (absl::StartsWith(body, "parent.jobs.")) {
      input.from = NameBehind(body, "parent.");
      bound[entry.key] = input;
      return;
    }
    const std::string name = NameBehind(body, "parent.inputs.");
    const auto found = scope_.pipeline.inputs.find(name);
    if (found == scope_.pipeline.inputs.end()) {
      bound[entry.key] = input;
      return Error(entry.line, UnknownParent(body, name));
    }
    if (scope_.open.contains(name)) input.from = absl::StrCat("inputs.", name);
    const Input own = input.input;
    input.input = found->second;
    if (input.input.place.line == 0) input.input.place = own.place;
    if (!own.type.empty()) input.input.type = own.type;
    if (!own.mode.empty()) input.input.mode = own.mode;
    bound[entry.key] = input;
  }

  std::string UnknownParent(const std::string& body, const std::string& name) const {
    if (name.empty()) {
      return absl::StrCat("names ${{", body.substr(0, 120), "}}, which is not understood",
                          MeantInput(body, Names()));
    }
    std::vector<absl::string_view> names;
    for (const auto& [key, input] : scope_.pipeline.inputs) names.push_back(key);
    return absl::StrCat("names ${{parent.inputs.", name.substr(0, 80),
                        "}}, which the pipeline does not have",
                        base::DidYouMean(name.substr(0, 80), names));
  }

  const YamlNode::Entry& entry_;
  const std::string what_;
  const Node root_;
  const Source source_;
  const Scope& scope_;
  bool component_is_read_ = false;
  std::optional<ComponentFile> component_;
  Step step_;
};

bool IsOptional(const YamlNode::Entry& definition) {
  const YamlNode::Entry* optional = FindValue(*definition.value, "optional");
  return optional != nullptr && absl::EqualsIgnoreCase(optional->value->scalar, "true");
}

// An input of the pipeline that has no value leaves the component's default, if there is one.
bool TakesDefault(const BoundInput& bound, const YamlNode::Entry* definition) {
  return bound.input.absent && definition != nullptr &&
         (FindValue(*definition->value, "default") != nullptr || !IsOptional(*definition));
}

void ReadOutputOver(const YamlNode::Entry& entry, absl::string_view what,
                    std::map<std::string, Output>& outputs, Diagnostics& diagnostics) {
  if (!CheckOutput(entry, what, outputs, diagnostics)) return;
  if (entry.value->kind == YamlNode::Kind::kNull || !BoundOutput(entry).empty()) return;
  if (UnboundOutput(entry).first > 0) return;  // has been told
  const Output own = ReadOutput(entry, diagnostics);
  Output& output = outputs[entry.key];
  output.mode = own.mode;
  if (FindValue(*entry.value, "type") != nullptr) output = own;
}

}  // namespace

std::string BoundOutput(const YamlNode::Entry& entry) {
  const YamlNode::Entry* path = FindValue(*entry.value, "path");
  const YamlNode& text = path == nullptr ? *entry.value : *path->value;
  return NameBehind(WholeExpression(text.scalar), "parent.outputs.");
}

void ReadOutputsOver(const YamlNode::Entry& section, absl::string_view what,
                     std::map<std::string, Output>& outputs, Diagnostics& diagnostics) {
  CheckIsMapping(section, diagnostics);
  for (const YamlNode::Entry& entry : section.value->entries) {
    ReadOutputOver(entry, what, outputs, diagnostics);
  }
}

void RefuseBoundOutputs(const YamlNode::Entry& section, Diagnostics& diagnostics) {
  for (const YamlNode::Entry& entry : section.value->entries) {
    const std::string bound = BoundOutput(entry);
    if (bound.empty()) continue;
    diagnostics.Error(entry.line, absl::StrCat("output \"", entry.key.substr(0, 80),
                                               "\" names ${{parent.outputs.", bound.substr(0, 80),
                                               "}}, but there is no pipeline around the job"));
  }
}

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
    if (input.mode.empty()) input.mode = mode == nullptr ? "ro_mount" : mode->value->scalar;
  }
  return inputs;
}

Step ReadStep(const YamlNode::Entry& entry, const Source& source, const Scope& scope) {
  return StepReader(entry, source, scope).Read();
}

}  // namespace tutti::spec
