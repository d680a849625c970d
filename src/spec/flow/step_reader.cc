#include "spec/flow/step_reader.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/text/closest.h"
#include "spec/command/job_data.h"
#include "spec/command/job_sections.h"
#include "spec/flow/input_bindings.h"
#include "spec/flow/step_outputs.h"
#include "spec/flow/sweep_reader.h"
#include "spec/text/other_kinds.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

using Node = std::shared_ptr<const YamlNode>;

constexpr std::array<absl::string_view, 3> kStepTypes = {"command", "sweep", "pipeline"};

// Reads one step: its bindings first, then what it runs.
class StepReader {
 public:
  StepReader(const YamlNode::Entry& entry, const Source& source, const Scope& scope,
             ReadPipelineStep read_pipeline)
      : entry_(entry),
        what_(absl::StrCat("step \"", absl::string_view(entry.key).substr(0, 80), "\"")),
        root_(WithValues(entry.value, scope)),
        source_{*root_, source.text, source.context, source.diagnostics},
        scope_(scope),
        read_pipeline_(read_pipeline) {}

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
    given.outputs = FindValue(*root_, "outputs");
    given.values_from = LocationsOfValues(*entry_.value, scope_);
    if (type != "pipeline" || FindValue(*root_, "component") != nullptr) {
      given.bound = ReadInputBindings(given, step_.name, scope_);
    }
    ReadByType(type, given);
    step_.job.experiment_name = experiment;
    step_.outputs_to = ReadOutputBindings(given, step_.name, scope_);
    for (const auto& [name, bound] : given.bound) {
      if (bound.from.empty()) continue;
      step_.inputs_from[name] = bound.from;
      step_.job.inputs.try_emplace(name, bound.input);  // also where no component could be had
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
      sweep.keys().Take("outputs");
      ReadSweep(sweep, given, step_.job);
      sweep.Finish(step_.job);
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
    job.outputs = ReadStepOutputs(given, scope_);
    step.CheckReferences(job);
    ReadSections(step.keys(), source_.context.site, job, source_.diagnostics);
    step.Finish(job);
  }

  // Reads what the component says, then what the step says over it.
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
      step_.job = read_pipeline_(file, given, scope);
    } else {
      ReadCommandComponent(file, given);
    }
    ReadStepHead(step);
    JobSpec& job = step_.job;
    if (type != "pipeline") {
      step.ReadVariables(job);
      step.ReadEnvironmentKey(job);
      step.ReadCompute("compute", job);
      ReadSections(step.keys(), source_.context.site, job, source_.diagnostics);
    }
    step.Finish(job);
    if (given.outputs != nullptr) {
      ReadOutputsOver(*given.outputs, what_, job.outputs, source_);
    }
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
    job.outputs = ReadOutputs(component.keys(), below, inner, "component");
    job.inputs = InputsOf(given, component.keys().Take("inputs"), file, inner);
    component.CheckReferences(job);
    ReadSections(component.keys(), below.site, job, inner);
    component.Finish(job);
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

  const YamlNode::Entry& entry_;
  const std::string what_;
  const Node root_;
  const Source source_;
  const Scope& scope_;
  const ReadPipelineStep read_pipeline_;
  bool component_is_read_ = false;
  std::optional<ComponentFile> component_;
  Step step_;
};

}  // namespace

Step ReadStep(const YamlNode::Entry& entry, const Source& source, const Scope& scope,
              ReadPipelineStep read_pipeline) {
  return StepReader(entry, source, scope, read_pipeline).Read();
}

}  // namespace tutti::spec
