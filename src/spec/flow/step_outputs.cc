#include "spec/flow/step_outputs.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/text/closest.h"
#include "spec/command/job_data.h"
#include "spec/command/output_place.h"
#include "spec/text/expressions.h"
#include "spec/text/unbound.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

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

// Where an output of a step has what looks like a binding and is none; nullptr if nowhere.
// ${{name}} and the like within an address are Azure ML's, and have no effect here.
const YamlNode::Entry* UnboundOutput(const YamlNode::Entry& entry) {
  const YamlNode::Entry* path = FindValue(*entry.value, "path");
  const YamlNode::Entry* at = path == nullptr ? &entry : path;
  const std::string& written = at->value->scalar;
  const std::string body = BindingIn(written);
  const bool is_whole = WholeExpression(written) == body || !absl::StrContains(written, "${{");
  const bool is_meant = is_whole && absl::StrContains(body, '.') && BoundOutput(entry).empty();
  return is_meant ? at : nullptr;
}

void ReadOutputOver(const YamlNode::Entry& entry, absl::string_view what,
                    std::map<std::string, Output>& outputs, const Source& source) {
  if (!CheckOutput(entry, what, outputs, source.diagnostics)) return;
  if (entry.value->kind == YamlNode::Kind::kNull || !BoundOutput(entry).empty()) return;
  if (UnboundOutput(entry) != nullptr) return;  // has been told
  Output& output = outputs[entry.key];
  Output own = ReadOutput(entry, source.context, source.diagnostics, "command", output.type);
  output.mode = own.mode;
  if (own.place || FindValue(*entry.value, "type") != nullptr) output = std::move(own);
}

void GiveToSteps(JobSpec& pipeline) {
  for (Step& step : pipeline.steps) {
    for (const auto& [name, outer] : step.outputs_to) {
      const auto of_pipeline = pipeline.outputs.find(outer);
      const auto of_step = step.job.outputs.find(name);
      if (of_pipeline == pipeline.outputs.end() || of_step == step.job.outputs.end()) continue;
      if (!of_pipeline->second.place) continue;
      of_step->second.place = of_pipeline->second.place;
      of_step->second.location = of_pipeline->second.location;
      NameFileByPlace(of_step->second);
    }
  }
}

void CheckTrials(const JobSpec& sweep, Diagnostics& diagnostics) {
  for (const auto& [name, output] : sweep.outputs) {
    if (!output.place || absl::StrContains(output.place->path, kOwnName)) continue;
    diagnostics.Error(
        output.location,
        absl::StrCat("output \"", name, "\": all trials of the sweep would write to ",
                     "the same place: put ", kOwnName, ", the trial's name, into ", "its path"));
  }
}

}  // namespace

std::string BoundOutput(const YamlNode::Entry& entry) {
  const YamlNode::Entry* path = FindValue(*entry.value, "path");
  const YamlNode& text = path == nullptr ? *entry.value : *path->value;
  return NameBehind(WholeExpression(text.scalar), "parent.outputs.");
}

std::map<std::string, Output> ReadStepOutputs(const Given& given, const Scope& scope) {
  std::map<std::string, Output> outputs;
  if (given.outputs == nullptr) return outputs;
  Diagnostics& diagnostics = given.source.diagnostics;
  CheckIsMapping(*given.outputs, diagnostics);
  for (const YamlNode::Entry& entry : given.outputs->value->entries) {
    if (!IsIdentifier(entry.key)) {
      diagnostics.Error(entry.line,
                        absl::StrCat(given.what, " has an output \"", entry.key.substr(0, 80),
                                     "\", whose name must be of letters, digits and \"_\""));
      continue;
    }
    Output& output = outputs[entry.key];
    if (UnboundOutput(entry) != nullptr) continue;  // which ReadOutputBindings tells
    const std::string bound = BoundOutput(entry);
    const auto outer = scope.pipeline.outputs.find(bound);
    if (bound.empty()) {
      output = ReadOutput(entry, given.source.context, diagnostics);
    } else if (outer != scope.pipeline.outputs.end()) {
      output = outer->second;
    }
  }
  return outputs;
}

void ReadOutputsOver(const YamlNode::Entry& section, absl::string_view what,
                     std::map<std::string, Output>& outputs, const Source& source) {
  CheckIsMapping(section, source.diagnostics);
  for (const YamlNode::Entry& entry : section.value->entries) {
    ReadOutputOver(entry, what, outputs, source);
  }
}

std::map<std::string, std::string> ReadOutputBindings(const Given& given, const std::string& name,
                                                      const Scope& scope) {
  std::map<std::string, std::string> bindings;
  if (given.outputs == nullptr) return bindings;
  const auto error = [&](int line, absl::string_view message) {
    given.source.diagnostics.Error(line, absl::StrCat(given.what, " ", message));
  };
  std::vector<absl::string_view> names;
  for (const auto& [outer, output] : scope.pipeline.outputs) names.push_back(outer);
  for (const YamlNode::Entry& entry : given.outputs->value->entries) {
    const std::string bound = BoundOutput(entry);
    if (scope.pipeline.outputs.contains(bound)) {
      bindings[entry.key] = bound;
    } else if (!bound.empty()) {
      error(entry.line, absl::StrCat("names ${{parent.outputs.", bound.substr(0, 80),
                                     "}}, which the pipeline does not have",
                                     base::DidYouMean(bound.substr(0, 80), names)));
    } else if (const YamlNode::Entry* at = UnboundOutput(entry)) {
      const std::string& written = at->value->scalar;
      error(at->line, absl::StrCat("gives output \"", entry.key.substr(0, 80), "\" ",
                                   written.substr(0, 120), ", which is no binding",
                                   MeantOutput(BindingIn(written), BindableFor(name, scope))));
    }
  }
  return bindings;
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

void SpreadOutputPlaces(JobSpec& job, Diagnostics& diagnostics) {
  if (job.kind == JobKind::kPipeline) GiveToSteps(job);
  if (job.kind == JobKind::kSweep) CheckTrials(job, diagnostics);
  for (Step& step : job.steps) SpreadOutputPlaces(step.job, diagnostics);
}

}  // namespace tutti::spec
