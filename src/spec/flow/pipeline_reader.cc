#include "spec/flow/pipeline_reader.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/closest.h"
#include "spec/command/job_data.h"
#include "spec/flow/binding.h"
#include "spec/flow/step_outputs.h"
#include "spec/flow/step_reader.h"
#include "spec/text/unbound.h"

namespace tutti::spec {
namespace {

constexpr size_t kMostSteps = 1000;
constexpr int kDeepest = 8;  // pipelines in pipelines

class PipelineReader {
 public:
  // `compute`: unless it names another.
  PipelineReader(const Source& source, absl::string_view what, AzureSchemaPath schema_path,
                 const std::string& compute)
      : source_(source), schema_path_(schema_path), keys_(source, what, schema_path) {
    spec_.kind = JobKind::kPipeline;
    spec_.compute = compute;
  }

  CommandReader& keys() { return keys_; }
  JobSpec& spec() { return spec_; }

  // A job that is one pipeline component: its steps, under the job's name, values and settings.
  JobSpec ReadOfComponent(const YamlNode::Entry& component) {
    keys_.ReadCompute("compute", spec_);
    ReadSettings();
    keys_.keys().Take("component");
    Given given{.source = source_, .what = "the job", .line = component.line};
    given.inputs = keys_.keys().Take("inputs");
    const YamlNode::Entry* outputs = keys_.keys().Take("outputs");
    if (const YamlNode::Entry* jobs = keys_.keys().Take("jobs")) {
      Error(jobs->line, "a pipeline has either jobs or a component");
    }
    keys_.Finish(spec_);
    const auto file = FindComponent(component, "the job", source_, source_.diagnostics);
    if (!file) return std::move(spec_);
    if (TypeOf(*file) != "pipeline") {
      Error(component.line, absl::StrCat(file->name, " has no jobs, so it is no ",
                                         "pipeline; name it in a step of this one: jobs: {main: ",
                                         "{component: …}}"));
      return std::move(spec_);
    }
    const std::set<std::string> nothing_open;
    TakeSteps(ReadPipelineComponent(*file, given, {spec_, nothing_open, spec_.compute, 0}));
    if (outputs == nullptr) return std::move(spec_);
    ReadOutputsOver(*outputs, "the job", spec_.outputs, source_);
    RefuseBoundOutputs(*outputs, source_.diagnostics);
    return std::move(spec_);
  }

  // All that is not the pipeline's identity, inputs and outputs.
  JobSpec Read(const std::set<std::string>& open, int depth) {
    if (schema_path_.schema == "pipeline") keys_.ReadCompute("compute", spec_);
    ReadSettings();
    const YamlNode::Entry* jobs = keys_.keys().Take("jobs");
    keys_.Finish(spec_);
    if (jobs == nullptr || jobs->value->kind != YamlNode::Kind::kMapping ||
        jobs->value->entries.empty()) {
      Error(jobs == nullptr ? source_.root.line : jobs->line,
            "a pipeline needs jobs: a mapping of its steps");
    } else if (depth > kDeepest) {
      Error(jobs->line, absl::StrCat("pipelines are nested deeper than ", kDeepest));
    } else if (jobs->value->entries.size() > kMostSteps) {
      Error(jobs->line, absl::StrCat("a pipeline has at most ", kMostSteps, " steps"));
    } else {
      ReadSteps(*jobs->value, open, depth);
    }
    return std::move(spec_);
  }

 private:
  void Error(int line, absl::string_view message) { source_.diagnostics.Error(line, message); }

  void ReadSettings() {
    const YamlNode::Entry* entry = keys_.keys().Take("settings");
    if (entry == nullptr) return;
    const Source below{*entry->value, source_.text, source_.context, source_.diagnostics};
    CommandReader settings(below, "settings", {"pipeline", "settings."});
    settings.ReadCompute("default_compute", spec_);
    settings.keys().Flag("continue_on_step_failure", spec_.continue_on_step_failure);
    bool force_rerun = false;
    settings.keys().Flag("force_rerun", force_rerun);
    if (force_rerun) spec_.reusable = false;
    settings.keys().Text("on_init", spec_.first_step);
    settings.keys().Text("on_finalize", spec_.last_step);
    settings.keys().Finish();
    line_of_settings_ = entry->line;
  }

  // Takes what the component brings; what the job says beside it goes first.
  void TakeSteps(JobSpec component) {
    spec_.inputs = std::move(component.inputs);
    spec_.outputs = std::move(component.outputs);
    spec_.steps = std::move(component.steps);
    spec_.continue_on_step_failure |= component.continue_on_step_failure;
    if (spec_.first_step.empty()) spec_.first_step = component.first_step;
    if (spec_.last_step.empty()) spec_.last_step = component.last_step;
    CheckSettings();
    for (Step& step : spec_.steps) {
      if (!spec_.reusable) step.job.reusable = false;
    }
    spec_.reusable &= component.reusable;
  }

  void CheckSettings() {
    for (const std::string* name : {&spec_.first_step, &spec_.last_step}) {
      if (!name->empty() && Find(*name) == nullptr) {
        Error(line_of_settings_, absl::StrCat("settings name the step \"", name->substr(0, 80),
                                              "\", which the pipeline does not have"));
      }
    }
  }

  void ReadSteps(const YamlNode& jobs, const std::set<std::string>& open, int depth) {
    const Scope scope{spec_, open, spec_.compute, depth, OutputsOfSteps(jobs)};
    for (const YamlNode::Entry& entry : jobs.entries) {
      Step step = ReadStep(entry, source_, scope, ReadPipelineComponent);
      if (!spec_.reusable) step.job.reusable = false;
      lines_.push_back(entry.line);
      spec_.steps.push_back(std::move(step));
    }
    CheckSettings();
    for (size_t i = 0; i < spec_.steps.size(); ++i) Connect(spec_.steps[i]);
    TakeOutputTypes();
    CheckOutputs();
    CheckOrder();
  }

  // An output of the pipeline is what the step that writes it makes of it.
  void TakeOutputTypes() {
    for (const Step& step : spec_.steps) {
      for (const auto& [name, outer] : step.outputs_to) {
        const auto written = step.job.outputs.find(name);
        if (written == step.job.outputs.end()) continue;
        spec_.outputs[outer].type = written->second.type;
        spec_.outputs[outer].file = written->second.file;
      }
    }
  }

  const Step* Find(absl::string_view name) const {
    for (const Step& step : spec_.steps) {
      if (step.name == name) return &step;
    }
    return nullptr;
  }

  // Checks that what a step is bound to is there, and gives its inputs the type of that.
  void Connect(Step& step) {
    for (const auto& [name, from] : step.inputs_from) {
      Input& input = step.job.inputs[name];
      if (input.mode.empty()) input.mode = "ro_mount";
      const auto source = ParseBinding(from);
      if (!source) {
        Error(input.location.line,
              absl::StrCat("step \"", step.name, "\": ${{parent.", from.substr(0, 120),
                           "}} is not understood; write "
                           "${{parent.jobs.STEP.outputs.NAME}}"));
        continue;
      }
      if (source->step.empty()) {
        if (input.type.empty()) input.type = spec_.inputs[source->name].type;
        continue;
      }
      ConnectTo(step, name, *source, input);
    }
    for (auto& [name, input] : step.job.inputs) {
      if (input.type.empty()) input.type = "uri_folder";
      if (input.mode.empty()) input.mode = "ro_mount";
    }
  }

  void ConnectTo(const Step& step, const std::string& name, const Binding& source, Input& input) {
    const Step* from = Find(source.step);
    if (from == nullptr) {
      std::vector<absl::string_view> names;
      for (const Step& other : spec_.steps) names.push_back(other.name);
      Error(input.location.line,
            absl::StrCat("step \"", step.name, "\" takes input \"", name, "\" from the step \"",
                         source.step.substr(0, 80), "\", which the pipeline does not have",
                         base::DidYouMean(source.step.substr(0, 80), names)));
      return;
    }
    const bool unread = from->job.command.empty() && from->job.steps.empty();
    if (unread) return;  // its component could not be had, which has been said
    const auto output = from->job.outputs.find(source.name);
    if (output == from->job.outputs.end()) {
      std::vector<absl::string_view> names;
      for (const auto& [key, value] : from->job.outputs) names.push_back(key);
      Error(input.location.line,
            absl::StrCat("step \"", step.name, "\" takes input \"", name, "\" from output \"",
                         source.name.substr(0, 80), "\", which the step \"", source.step,
                         "\" does not have", base::DidYouMean(source.name.substr(0, 80), names)));
      return;
    }
    input.type = output->second.type;
  }

  // Two steps that write one output of the pipeline would leave whose it is open.
  void CheckOutputs() {
    std::map<std::string, std::string> writers;
    for (size_t i = 0; i < spec_.steps.size(); ++i) {
      for (const auto& [output, outer] : spec_.steps[i].outputs_to) {
        const auto [first, is_new] = writers.emplace(outer, spec_.steps[i].name);
        if (!is_new) {
          Error(lines_[i], absl::StrCat("the pipeline's output \"", outer, "\" is written by \"",
                                        first->second, "\" and by \"", spec_.steps[i].name, "\""));
        }
      }
    }
  }

  // Steps that wait for each other would never start (Kahn 1962: take away what waits for nothing).
  void CheckOrder() {
    std::vector<std::set<std::string>> needs;
    for (const Step& step : spec_.steps) {
      needs.push_back(NeedsOf(spec_, step));
      std::erase_if(needs.back(), [&](const std::string& name) { return Find(name) == nullptr; });
    }
    std::set<std::string> done;
    for (bool any = true; any;) {
      any = false;
      for (size_t i = 0; i < spec_.steps.size(); ++i) {
        if (done.contains(spec_.steps[i].name)) continue;
        const auto is_done = [&](const std::string& name) { return done.contains(name); };
        if (!std::all_of(needs[i].begin(), needs[i].end(), is_done)) continue;
        done.insert(spec_.steps[i].name);
        any = true;
      }
    }
    std::vector<std::string> waiting;
    int line = 0;
    for (size_t i = 0; i < spec_.steps.size(); ++i) {
      if (done.contains(spec_.steps[i].name)) continue;
      waiting.push_back(spec_.steps[i].name);
      if (line == 0) line = lines_[i];
    }
    if (waiting.empty()) return;
    Error(line, absl::StrCat("these steps wait for each other: ", absl::StrJoin(waiting, ", ")));
  }

  const Source source_;
  const AzureSchemaPath schema_path_;
  CommandReader keys_;
  JobSpec spec_;
  std::vector<int> lines_;  // of the steps
  int line_of_settings_ = 0;
};

}  // namespace

JobSpec ReadPipelineJob(const Source& source) {
  PipelineReader reader(source, "a pipeline file", {"pipeline", ""}, "local");
  std::string unused;
  reader.keys().keys().Text("$schema", unused);
  reader.keys().keys().Text("type", unused);
  reader.keys().ReadIdentity(reader.spec());
  if (const YamlNode::Entry* component = reader.keys().Find("component")) {
    return reader.ReadOfComponent(*component);
  }
  reader.spec().inputs = ReadInputs(reader.keys().keys(), source.context, source.diagnostics);
  reader.spec().outputs = ReadOutputs(reader.keys().keys(), source.context, source.diagnostics);
  return reader.Read({}, 0);
}

JobSpec ReadPipelineComponent(const ComponentFile& component, const Given& given,
                              const Scope& scope) {
  Diagnostics inner(component.shown);
  const ReadContext below = given.source.context.Beside(component.folder / "here", component.shown);
  const Source source{*component.root, component.text, below, inner};
  PipelineReader reader(source, component.name, {"component", ""}, scope.compute);
  JobSpec& spec = reader.spec();
  spec.file_name = component.shown;
  reader.keys().ReadComponentIdentity(spec);
  spec.experiment_name = scope.pipeline.experiment_name;
  spec.inputs = InputsOf(given, reader.keys().keys().Take("inputs"), component, inner);
  spec.outputs = ReadOutputs(reader.keys().keys(), below, inner, "component");
  std::set<std::string> open;
  for (const auto& [name, bound] : given.bound) {
    if (!bound.from.empty()) open.insert(name);
  }
  JobSpec read = reader.Read(open, scope.depth + 1);
  given.source.diagnostics.Add(given.line, inner);
  return read;
}

}  // namespace tutti::spec
