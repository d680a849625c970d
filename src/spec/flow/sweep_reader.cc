#include "spec/flow/sweep_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/closest.h"
#include "spec/command/job_data.h"
#include "spec/command/job_sections.h"
#include "spec/flow/component_file.h"
#include "spec/flow/search_reader.h"
#include "spec/flow/step_outputs.h"
#include "spec/text/expressions.h"

namespace tutti::spec {
namespace {

// ${{search_space.x}} is an input of the trial.
std::string AsInputs(absl::string_view text, const Sweep& sweep) {
  return ReplaceExpressions(text, [&](absl::string_view body) -> std::optional<std::string> {
    for (const SearchParameter& parameter : sweep.parameters) {
      if (body == absl::StrCat("search_space.", parameter.name)) {
        return absl::StrCat("${{inputs.", parameter.name, "}}");
      }
    }
    return std::nullopt;
  });
}

int LineOf(const std::string& parameter, const Given& given) {
  const YamlNode::Entry* const entry = FindEntry(*given.search_space->value, parameter);
  return entry == nullptr ? given.line : entry->line;
}

// A component takes a parameter as its input, or names it in its command.
void CheckUse(const std::string& name, const Given& given, const YamlNode::Entry* definitions,
              const ComponentFile& component, const JobSpec& spec) {
  if (absl::StrContains(spec.command, "search_space." + name)) return;
  std::vector<absl::string_view> names;
  if (definitions != nullptr) {
    for (const YamlNode::Entry& entry : definitions->value->entries) names.push_back(entry.key);
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  given.source.diagnostics.Error(
      LineOf(name, given),
      absl::StrCat("search_space \"", name, "\": ", component.name, " has no input of that name",
                   base::DidYouMean(name, names)));
}

// Returns what the trials are given: what the sweep is given, and the parameters.
Given ToTrials(const Given& given, const Sweep& sweep) {
  Given with = given;
  for (const SearchParameter& parameter : sweep.parameters) {
    BoundInput& bound = with.bound[parameter.name];
    bound.input =
        Input{.type = "",
              .mode = "direct",
              .location = {given.source.diagnostics.file_name(), LineOf(parameter.name, given)}};
    bound.from.clear();
  }
  return with;
}

// Finishes what the trials run, once their inputs are there.
void FinishTrial(CommandReader& trial, JobSpec& spec) {
  for (const SearchParameter& parameter : spec.sweep->parameters) {
    Input& input = spec.inputs[parameter.name];
    if (!input.type.empty()) continue;
    input.type = parameter.kind == SearchKind::kChoice    ? "string"
                 : parameter.kind == SearchKind::kRandInt ? "integer"
                                                          : "number";
  }
  spec.command = AsInputs(spec.command, *spec.sweep);
  for (auto& [name, value] : spec.environment_variables) value = AsInputs(value, *spec.sweep);
  trial.CheckReferences(spec);
}

// Returns whether the trial is written out; with inputs or outputs of its own it is a component.
bool IsInlineTrial(const YamlNode& trial) {
  const auto is_components = [](const YamlNode::Entry& entry) {
    return entry.key == "inputs" || entry.key == "outputs";
  };
  return trial.kind == YamlNode::Kind::kMapping &&
         std::none_of(trial.entries.begin(), trial.entries.end(), is_components);
}

void ReadInlineTrial(const YamlNode::Entry& entry, const Given& given, JobSpec& spec) {
  const Source source{*entry.value, given.source.text, given.source.context,
                      given.source.diagnostics};
  CommandReader trial(source, "trial", {"sweep", "trial."});
  if (const YamlNode::Entry* component = trial.Find("component")) {
    given.source.diagnostics.Error(
        component->line,
        "a trial that is a component is named alone: trial: " + component->value->scalar);
    return;
  }
  std::string unused;
  trial.keys().Text("type", unused);
  trial.ReadCommand(spec);
  trial.ReadVariables(spec);
  trial.ReadCode(spec);
  trial.ReadEnvironmentKey(spec);
  ReadSections(trial.keys(), source.context.site, spec, source.diagnostics);
  trial.Finish(spec);
  if (given.outputs != nullptr) {
    CheckIsMapping(*given.outputs, source.diagnostics);
    for (const YamlNode::Entry& output : given.outputs->value->entries) {
      if (BoundOutput(output).empty()) {
        spec.outputs[output.key] = ReadOutput(output, source.context, source.diagnostics);
      } else {
        spec.outputs[output.key];
      }
    }
  }
  spec.inputs = InputsOf(ToTrials(given, *spec.sweep));
  FinishTrial(trial, spec);
}

void ReadTrialComponent(const YamlNode::Entry& entry, const Given& given, JobSpec& spec) {
  const auto file = FindComponent(entry, given.what, given.source, given.source.diagnostics);
  if (!file) return;
  Diagnostics inner(file->shown);
  const ReadContext below = given.source.context.Beside(file->folder / "here", file->shown);
  CommandReader trial({*file->root, file->text, below, inner}, file->name, {"component", ""});
  spec.file_name = file->shown;
  const JobSpec named = spec;
  trial.ReadComponentIdentity(spec);
  spec.description = named.description;
  spec.tags = named.tags;
  trial.ReadCommand(spec);
  trial.ReadVariables(spec);
  trial.ReadCode(spec);
  trial.ReadIncludes(spec);
  trial.ReadEnvironmentKey(spec);
  spec.outputs = ReadOutputs(trial.keys(), below, inner, "component");
  if (given.outputs != nullptr) {
    ReadOutputsOver(*given.outputs, given.what, spec.outputs, given.source);
  }
  ReadSections(trial.keys(), below.site, spec, inner);
  const YamlNode::Entry* definitions = trial.keys().Take("inputs");
  for (const SearchParameter& parameter : spec.sweep->parameters) {
    CheckUse(parameter.name, given, definitions, *file, spec);
  }
  spec.inputs = InputsOf(ToTrials(given, *spec.sweep), definitions, *file, inner);
  FinishTrial(trial, spec);
  trial.Finish(spec);
  given.source.diagnostics.Add(entry.line, inner);
}

// A sweep is parallel by its trials, which wait for no other node's gradients.
void WarnOfTrialsOverNodes(const JobSpec& spec, Diagnostics& diagnostics) {
  if (spec.instance_count == 1) return;
  diagnostics.Warning(
      spec.instance_count_location,
      absl::StrCat("each trial takes ", spec.instance_count,
                   " nodes: trials of one node use them better, as they need no network; take "
                   "instance_count: 1 unless the model does not fit"));
}

}  // namespace

void ReadSweep(CommandReader& sweep, const Given& to_sweep, JobSpec& spec) {
  spec.kind = JobKind::kSweep;
  ReadSearch(sweep, to_sweep, spec);
  Given given = to_sweep;
  given.search_space = sweep.Find("search_space");
  const YamlNode::Entry* trial = sweep.keys().Take("trial");
  if (trial == nullptr) {
    given.source.diagnostics.Error(given.line, "a sweep needs a trial: what each of them runs");
    return;
  }
  const absl::Duration timeout = std::exchange(spec.timeout, absl::InfiniteDuration());
  if (IsInlineTrial(*trial->value)) {
    ReadInlineTrial(*trial, given, spec);
  } else {
    ReadTrialComponent(*trial, given, spec);
  }
  absl::Duration& of_trials = spec.sweep->trial_timeout;
  of_trials = std::min(of_trials, std::exchange(spec.timeout, timeout));
  ReadResources(sweep.keys(), given.source.context.site, spec, given.source.diagnostics);
  ReadQueueSettings(sweep.keys(), spec, given.source.diagnostics);
  WarnOfTrialsOverNodes(spec, given.source.diagnostics);
}

JobSpec ReadSweepJob(const Source& source) {
  JobSpec spec;
  spec.compute = "local";
  CommandReader sweep(source, "a sweep file", {"sweep", ""});
  std::string unused;
  sweep.keys().Text("$schema", unused);
  sweep.keys().Text("type", unused);
  sweep.ReadIdentity(spec);
  sweep.ReadCompute("compute", spec);
  Given given{.source = source, .what = "the sweep", .line = source.root.line};
  given.inputs = sweep.keys().Take("inputs");
  given.outputs = sweep.keys().Take("outputs");
  if (given.outputs != nullptr) RefuseBoundOutputs(*given.outputs, source.diagnostics);
  ReadSweep(sweep, given, spec);
  sweep.Finish(spec);
  return spec;
}

}  // namespace tutti::spec
