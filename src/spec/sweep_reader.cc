#include "spec/sweep_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/closest.h"
#include "spec/component_file.h"
#include "spec/expressions.h"
#include "spec/job_data.h"
#include "spec/job_scale.h"
#include "spec/names.h"

namespace tutti::spec {
namespace {

constexpr int kMostTrials = 10'000;
constexpr int kMostParameters = 1'000;
constexpr int kMostSobol = 21;  // direction numbers that the sampler has
constexpr int kMostSeconds = 10 * 365 * 86'400;
constexpr int kMostReports = 1'000'000;

std::optional<double> Number(const YamlNode& node) {
  double number = 0;
  if (node.kind != YamlNode::Kind::kScalar || !absl::SimpleAtod(node.scalar, &number) ||
      !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

// Reads what the trials differ in.
class SearchSpaceReader {
 public:
  SearchSpaceReader(const YamlNode::Entry& entry, Diagnostics& diagnostics)
      : entry_(entry),
        what_(absl::StrCat("search_space \"", absl::string_view(entry.key).substr(0, 80), "\"")),
        diagnostics_(diagnostics),
        keys_(*entry.value, what_, diagnostics, {"sweep", "search_space.*."}) {
    parameter_.name = entry.key;
  }

  SearchParameter Read() {
    if (!IsIdentifier(entry_.key)) Error("must have a name of letters, digits and \"_\"");
    std::string type;
    if (entry_.value->kind != YamlNode::Kind::kMapping) return std::move(parameter_);
    const auto names = SearchKindNames();
    if (keys_.Choice("type", names, type) == nullptr) {
      if (keys_.Take("type") == nullptr) Error("has no type: choice, uniform, …");
      return std::move(parameter_);
    }
    parameter_.kind = *SearchKindFromName(type);
    ReadByKind();
    keys_.Finish();
    return std::move(parameter_);
  }

 private:
  void Error(absl::string_view message) {
    diagnostics_.Error(entry_.line, absl::StrCat(what_, " ", message));
  }

  void ReadByKind() {
    using enum SearchKind;
    SearchParameter& p = parameter_;
    switch (p.kind) {
      case kChoice:
        return ReadValues();
      case kRandInt:
        return ReadUpper();
      case kQUniform:
      case kQLogUniform:
        Need("q", p.q);
        [[fallthrough]];
      case kUniform:
      case kLogUniform:
        Need("min_value", p.low);
        Need("max_value", p.high);
        if (p.low > p.high) Error("has a min_value above its max_value");
        break;
      case kQNormal:
      case kQLogNormal:
        Need("q", p.q);
        [[fallthrough]];
      case kNormal:
      case kLogNormal:
        Need("mu", p.mu);
        Need("sigma", p.sigma);
        if (!(p.sigma > 0)) Error("needs a sigma above 0");
        break;
    }
    if (!(p.q > 0)) Error("needs a q above 0");
  }

  void Need(absl::string_view key, double& value) {
    const YamlNode::Entry* entry = keys_.Take(key);
    const auto number = entry == nullptr ? std::nullopt : Number(*entry->value);
    if (!number) return Error(absl::StrCat("needs ", key, ", a number"));
    value = *number;
  }

  void ReadUpper() {
    const YamlNode::Entry* entry = keys_.Take("upper");
    const auto number = entry == nullptr ? std::nullopt : Number(*entry->value);
    if (!number || *number < 1 || *number > 1e15 || *number != std::floor(*number)) {
      return Error("needs upper, a whole number above 0: values are from 0 to upper - 1");
    }
    parameter_.upper = static_cast<int64_t>(*number);
  }

  void ReadValues() {
    const YamlNode::Entry* entry = keys_.Take("values");
    if (entry == nullptr || entry->value->kind != YamlNode::Kind::kSequence ||
        entry->value->items.empty()) {
      return Error("needs values, a list of at least one");
    }
    for (const auto& item : entry->value->items) {
      if (item->kind != YamlNode::Kind::kScalar) {
        diagnostics_.Error(item->line, absl::StrCat(what_,
                                                    ": a value must be text or a number, "
                                                    "but is ",
                                                    KindName(*item)));
      } else {
        parameter_.values.push_back(TextOf(*item));
      }
    }
  }

  // As Azure ML's str() puts it into the command.
  static std::string TextOf(const YamlNode& node) {
    const std::string lower = absl::AsciiStrToLower(node.scalar);
    if (node.quoted || (lower != "true" && lower != "false")) return node.scalar;
    return lower == "true" ? "True" : "False";
  }

  const YamlNode::Entry& entry_;
  const std::string what_;
  Diagnostics& diagnostics_;
  MappingReader keys_;
  SearchParameter parameter_;
};

// Reads what a sweep says of its search: all but the trial.
class SearchReader {
 public:
  SearchReader(CommandReader& sweep, const Given& given, JobSpec& spec)
      : keys_(sweep.keys()),
        diagnostics_(given.source.diagnostics),
        line_(given.line),
        spec_(spec) {
    spec_.sweep.emplace();
  }

  void Read() {
    ReadSpace();
    ReadSampling();
    ReadObjective();
    ReadEarlyTermination();
    ReadLimits();
    CheckTogether();
  }

 private:
  Sweep& sweep() { return *spec_.sweep; }

  void ReadSpace() {
    const YamlNode::Entry* entry = keys_.Take("search_space");
    if (entry == nullptr || entry->value->entries.empty()) {
      diagnostics_.Error(entry == nullptr ? line_ : entry->line,
                         "a sweep needs a search_space: a mapping of what its trials differ in");
      return;
    }
    for (const YamlNode::Entry& parameter : entry->value->entries) {
      sweep().parameters.push_back(SearchSpaceReader(parameter, diagnostics_).Read());
      lines_.push_back(parameter.line);
    }
    if (sweep().parameters.size() > kMostParameters) {
      diagnostics_.Error(entry->line, "search_space has too many parameters");
    }
  }

  void ReadSampling() {
    const YamlNode::Entry* entry = keys_.Take("sampling_algorithm");
    if (entry == nullptr) return;
    std::string type = "random", rule = "random";
    line_of_sampling_ = entry->line;
    if (entry->value->kind == YamlNode::Kind::kScalar) {
      type = absl::AsciiStrToLower(entry->value->scalar);
    } else {
      MappingReader reader(*entry->value, "sampling_algorithm", diagnostics_,
                           {"sweep", "sampling_algorithm."});
      reader.Text("type", type);
      type = absl::AsciiStrToLower(type);
      static constexpr std::array<absl::string_view, 2> kRules = {"random", "sobol"};
      reader.Choice("rule", kRules, rule);
      ReadSeed(reader);
      ReadLogBase(reader);
      reader.Finish();
    }
    static constexpr std::array<absl::string_view, 4> kTypes = {"random", "sobol", "grid",
                                                                "bayesian"};
    if (type == "sobol" || (type == "random" && rule == "sobol")) {
      sweep().sampling = Sampling::kSobol;
    } else if (type == "grid") {
      sweep().sampling = Sampling::kGrid;
    } else if (type == "bayesian") {
      sweep().sampling = Sampling::kBayesian;
    } else if (type != "random") {
      diagnostics_.Error(entry->line, absl::StrCat("sampling_algorithm \"", type.substr(0, 80),
                                                   "\" is none of random, grid, bayesian",
                                                   base::DidYouMean(type.substr(0, 80), kTypes)));
    }
  }

  void ReadSeed(MappingReader& reader) {
    const YamlNode::Entry* entry = reader.Take("seed");
    int64_t seed = 0;
    if (entry == nullptr) return;
    if (!absl::SimpleAtoi(entry->value->scalar, &seed)) {
      diagnostics_.Error(entry->line, "seed must be a whole number");
    } else {
      sweep().seed = seed;
    }
  }

  // A number above 0 and not 1, or "e".
  void ReadLogBase(MappingReader& reader) {
    const YamlNode::Entry* entry = reader.Take("logbase");
    if (entry == nullptr || absl::EqualsIgnoreCase(entry->value->scalar, "e")) return;
    const auto number = Number(*entry->value);
    if (!number || !(*number > 0) || *number == 1) {
      diagnostics_.Error(entry->line, "logbase must be a number above 0, not 1, or \"e\"");
    } else {
      sweep().log_base = *number;
    }
  }

  void ReadObjective() {
    const YamlNode::Entry* entry = keys_.Take("objective");
    if (entry == nullptr) {
      diagnostics_.Error(line_, "a sweep needs an objective: {goal: minimize, primary_metric: …}");
      return;
    }
    MappingReader reader(*entry->value, "objective", diagnostics_, {"sweep", "objective."});
    static constexpr std::array<absl::string_view, 2> kGoals = {"minimize", "maximize"};
    std::string goal;
    if (reader.Choice("goal", kGoals, goal) == nullptr && reader.Take("goal") == nullptr) {
      diagnostics_.Error(entry->line, "objective has no goal: minimize or maximize");
    }
    sweep().maximize = goal == "maximize";
    reader.Text("primary_metric", sweep().metric);
    if (sweep().metric.empty()) diagnostics_.Error(entry->line, "objective has no primary_metric");
    reader.Finish();
  }

  void ReadEarlyTermination() {
    const YamlNode::Entry* entry = keys_.Take("early_termination");
    if (entry == nullptr) return;
    MappingReader reader(*entry->value, "early_termination", diagnostics_,
                         {"sweep", "early_termination."});
    static constexpr std::array<absl::string_view, 3> kPolicies = {"bandit", "median_stopping",
                                                                   "truncation_selection"};
    using Kind = EarlyTermination::Kind;
    EarlyTermination& policy = sweep().early_termination;
    std::string type;
    if (reader.Choice("type", kPolicies, type) == nullptr) {
      if (reader.Take("type") == nullptr) {
        diagnostics_.Error(entry->line,
                           "early_termination has no type: bandit, median_stopping "
                           "or truncation_selection");
      }
      return;
    }
    reader.Count("evaluation_interval", kMostReports, policy.evaluation_interval);
    ReadDelay(reader, policy);
    if (type == "bandit") {
      policy.kind = Kind::kBandit;
      ReadSlack(entry->line, reader, policy);
    } else if (type == "median_stopping") {
      policy.kind = Kind::kMedianStopping;
    } else {
      policy.kind = Kind::kTruncationSelection;
      if (reader.Count("truncation_percentage", 99, policy.truncation_percentage) == nullptr &&
          reader.Take("truncation_percentage") == nullptr) {
        diagnostics_.Error(entry->line, "truncation_selection needs truncation_percentage");
      }
    }
    reader.Finish();
  }

  void ReadDelay(MappingReader& reader, EarlyTermination& policy) {
    const YamlNode::Entry* entry = reader.Take("delay_evaluation");
    if (entry != nullptr && entry->value->scalar != "0") {
      reader.Count("delay_evaluation", kMostReports, policy.delay_evaluation);
    }
  }

  // One of the two, not less than 0; a slack of 0 spares only the best.
  void ReadSlack(int line, MappingReader& reader, EarlyTermination& policy) {
    bool any = false;
    for (const auto& [key, value] : {std::pair{"slack_factor", &policy.slack_factor},
                                     std::pair{"slack_amount", &policy.slack_amount}}) {
      const YamlNode::Entry* entry = reader.Take(key);
      if (entry == nullptr) continue;
      const auto number = Number(*entry->value);
      if (!number || *number < 0) {
        diagnostics_.Error(entry->line, absl::StrCat(key, " must be a number not below 0"));
      } else {
        any = any || *number > 0;
        *value = *number;
      }
    }
    if (!any) diagnostics_.Error(line, "bandit needs slack_factor or slack_amount, above 0");
    if (policy.slack_factor > 0 && policy.slack_amount > 0) {
      diagnostics_.Error(line, "bandit takes slack_factor or slack_amount, not both");
    }
  }

  void ReadLimits() {
    const YamlNode::Entry* entry = keys_.Take("limits");
    if (entry == nullptr) return;
    MappingReader reader(*entry->value, "limits", diagnostics_, {"sweep", "limits."});
    reader.Count("max_total_trials", kMostTrials, sweep().max_trials);
    reader.Count("max_concurrent_trials", kMostTrials, sweep().max_concurrent);
    int seconds = 0;
    if (reader.Count("timeout", kMostSeconds, seconds)) spec_.timeout = absl::Seconds(seconds);
    if (reader.Count("trial_timeout", kMostSeconds, seconds)) {
      sweep().trial_timeout = absl::Seconds(seconds);
    }
    reader.Finish();
  }

  void CheckTogether() {
    const auto& parameters = sweep().parameters;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (sweep().sampling != Sampling::kGrid || parameters[i].kind == SearchKind::kChoice)
        continue;
      diagnostics_.Error(lines_[i], absl::StrCat("search_space \"", parameters[i].name,
                                                 "\" is no choice; grid sampling tries all values, "
                                                 "and takes only choices"));
    }
    if (sweep().sampling == Sampling::kSobol && parameters.size() > kMostSobol) {
      diagnostics_.Error(line_of_sampling_,
                         absl::StrCat("sobol takes at most ", kMostSobol, " parameters"));
    }
  }

  MappingReader& keys_;
  Diagnostics& diagnostics_;
  const int line_;
  JobSpec& spec_;
  std::vector<int> lines_;  // of the parameters
  int line_of_sampling_ = 1;
};

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

// A component takes a parameter as its input, or names it in its command.
void CheckUse(const std::string& name, const Given& given, const YamlNode::Entry* definitions,
              const std::string& component, const JobSpec& spec) {
  if (component.empty() || absl::StrContains(spec.command, "search_space." + name)) return;
  std::vector<absl::string_view> names;
  if (definitions != nullptr) {
    for (const YamlNode::Entry& entry : definitions->value->entries) names.push_back(entry.key);
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  given.source.diagnostics.Error(
      given.line, absl::StrCat("search_space \"", name, "\": component ", component,
                               " has no input of that name", base::DidYouMean(name, names)));
}

// What the trials run; `definitions` are the component's inputs, null for an inline trial.
void FinishTrial(CommandReader& trial, const Given& given, const YamlNode::Entry* definitions,
                 const std::string& component, JobSpec& spec) {
  Given with = given;
  for (const SearchParameter& parameter : spec.sweep->parameters) {
    BoundInput& bound = with.bound[parameter.name];
    bound.input = Input{.type = "", .mode = "direct", .line = given.line};
    bound.from.clear();
    CheckUse(parameter.name, given, definitions, component, spec);
  }
  spec.inputs = InputsOf(with, definitions, component);
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

void ReadInlineTrial(const YamlNode::Entry& entry, const Given& given, JobSpec& spec) {
  const Source source{*entry.value, given.source.text, given.source.context,
                      given.source.diagnostics};
  CommandReader trial(source, "trial", {"sweep", "trial."});
  std::string unused;
  trial.keys().Text("type", unused);
  trial.ReadCommand(spec);
  trial.ReadVariables(spec);
  trial.ReadCode(spec);
  trial.ReadEnvironmentKey(spec);
  ReadScale(trial.keys(), spec, source.diagnostics);
  trial.keys().Finish();
  if (given.outputs != nullptr) {
    for (const YamlNode::Entry& output : given.outputs->value->entries) {
      if (WholeExpression(output.value->scalar).empty()) {
        spec.outputs[output.key] = ReadOutput(output, source.diagnostics);
      } else {
        spec.outputs[output.key];
      }
    }
  }
  FinishTrial(trial, given, nullptr, "", spec);
}

void ReadTrialComponent(const YamlNode::Entry& entry, const Given& given, JobSpec& spec) {
  const auto file = FindComponent(entry, given.source.context, given.source.diagnostics);
  if (!file) return;
  Diagnostics inner(file->shown);
  const ReadContext below = given.source.context.Below(file->folder);
  CommandReader trial({*file->root, file->text, below, inner}, "a component", {"component", ""});
  spec.file_name = file->shown;
  const JobSpec named = spec;
  trial.ReadComponentIdentity(spec);
  spec.description = named.description;
  spec.tags = named.tags;
  trial.ReadCommand(spec);
  trial.ReadVariables(spec);
  trial.ReadCode(spec);
  trial.ReadEnvironmentKey(spec);
  spec.outputs = ReadOutputs(trial.keys(), inner, "component");
  ReadScale(trial.keys(), spec, inner);
  FinishTrial(trial, given, trial.keys().Take("inputs"), file->shown, spec);
  trial.keys().Finish();
  given.source.diagnostics.Add(entry.line, inner);
}

}  // namespace

void ReadSweep(CommandReader& sweep, const Given& given, JobSpec& spec) {
  spec.kind = JobKind::kSweep;
  SearchReader(sweep, given, spec).Read();
  const YamlNode::Entry* trial = sweep.keys().Take("trial");
  if (trial == nullptr) {
    given.source.diagnostics.Error(given.line, "a sweep needs a trial: what each of them runs");
    return;
  }
  const absl::Duration timeout = std::exchange(spec.timeout, absl::InfiniteDuration());
  if (trial->value->kind == YamlNode::Kind::kMapping) {
    ReadInlineTrial(*trial, given, spec);
  } else {
    ReadTrialComponent(*trial, given, spec);
  }
  absl::Duration& of_trials = spec.sweep->trial_timeout;
  of_trials = std::min(of_trials, std::exchange(spec.timeout, timeout));
  ReadResources(sweep.keys(), spec, given.source.diagnostics);
  ReadQueueSettings(sweep.keys(), spec, given.source.diagnostics);
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
  ReadSweep(sweep, given, spec);
  sweep.keys().Finish();
  return spec;
}

}  // namespace tutti::spec
