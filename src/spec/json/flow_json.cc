#include "spec/json/flow_json.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "spec/types/enum_names.h"

namespace tutti::spec {
namespace {
using nlohmann::json;

constexpr int kMost = std::numeric_limits<int>::max();

// JSON has no infinity.
json JsonOfDuration(absl::Duration span) {
  if (span == absl::InfiniteDuration()) return nullptr;
  return absl::ToDoubleSeconds(span);
}

// Any number: parameters of distributions may be negative.
void ReadNumber(const json& object, JsonFields& fields, const char* name, double& value) {
  fields.Ignore(name);
  const auto found = object.find(name);
  if (found == object.end()) return;
  if (!found->is_number()) return fields.Fail(absl::StrCat(fields.PathOf(name), " is no number"));
  value = found->get<double>();
}

// A value of an enumeration, by its name.
template <typename Value, typename FromName>
void ReadNamed(JsonFields& fields, const char* name, Value& value, const FromName& from_name) {
  std::string text(Name(value));
  fields.Read(name, text);
  if (const auto known = from_name(text)) {
    value = *known;
  } else {
    fields.Fail(absl::StrCat(fields.PathOf(name), " is unknown: \"", text, "\""));
  }
}

json JsonOf(const SearchParameter& p) {
  return {{"name", p.name},
          {"type", std::string(Name(p.kind))},
          {"values", p.values},
          {"upper", p.upper},
          {"low", p.low},
          {"high", p.high},
          {"mu", p.mu},
          {"sigma", p.sigma},
          {"q", p.q}};
}

void ReadParameter(const json& object, const std::string& path, JsonFields& parent,
                   SearchParameter& p) {
  JsonFields fields(object, path, Missing::kKeepsDefault);
  fields.Read("name", p.name);
  ReadNamed(fields, "type", p.kind, SearchKindFromName);
  fields.Read("values", p.values);
  fields.Read("upper", p.upper, 1);
  for (const auto& [name, value] :
       {std::pair{"low", &p.low}, std::pair{"high", &p.high}, std::pair{"mu", &p.mu},
        std::pair{"sigma", &p.sigma}, std::pair{"q", &p.q}}) {
    if (object.is_object()) ReadNumber(object, fields, name, *value);
  }
  parent.Update(fields.Finish());
}

json JsonOf(const EarlyTermination& policy) {
  return {{"type", std::string(Name(policy.kind))},
          {"evaluation_interval", policy.evaluation_interval},
          {"delay_evaluation", policy.delay_evaluation},
          {"slack_factor", policy.slack_factor},
          {"slack_amount", policy.slack_amount},
          {"truncation_percentage", policy.truncation_percentage}};
}

void ReadPolicy(const json& object, JsonFields& parent, EarlyTermination& policy) {
  JsonFields fields(object, "sweep.early_termination", Missing::kKeepsDefault);
  ReadNamed(fields, "type", policy.kind, EarlyTerminationFromName);
  fields.Read("evaluation_interval", policy.evaluation_interval, 1, kMost);
  fields.Read("delay_evaluation", policy.delay_evaluation, 0, kMost);
  fields.Read("slack_factor", policy.slack_factor);
  fields.Read("slack_amount", policy.slack_amount);
  fields.Read("truncation_percentage", policy.truncation_percentage, 0, 99);
  parent.Update(fields.Finish());
}

void ReadSweepObject(const json& object, JsonFields& parent, Sweep& sweep) {
  JsonFields fields(object, "sweep", Missing::kKeepsDefault);
  if (const json* list = fields.Array("parameters")) {
    for (size_t i = 0; i < list->size(); ++i) {
      ReadParameter((*list)[i], absl::StrCat("sweep.parameters[", i, "]"), fields,
                    sweep.parameters.emplace_back());
    }
  }
  ReadNamed(fields, "sampling", sweep.sampling, SamplingFromName);
  if (object.contains("seed") && !object["seed"].is_null()) {
    int64_t seed = 0;
    fields.Read("seed", seed, std::numeric_limits<int64_t>::min());
    sweep.seed = seed;
  }
  fields.Ignore("seed");
  ReadNumber(object, fields, "log_base", sweep.log_base);
  fields.Read("maximize", sweep.maximize);
  fields.Read("metric", sweep.metric);
  fields.Ignore("early_termination");
  if (object.contains("early_termination")) {
    ReadPolicy(object["early_termination"], fields, sweep.early_termination);
  }
  fields.Read("max_trials", sweep.max_trials, 1, kMost);
  fields.Read("max_concurrent", sweep.max_concurrent, 1, kMost);
  if (object.contains("trial_timeout_seconds") && object["trial_timeout_seconds"].is_number()) {
    double seconds = 0;
    fields.Read("trial_timeout_seconds", seconds);
    sweep.trial_timeout = absl::Seconds(seconds);
  }
  fields.Ignore("trial_timeout_seconds");
  parent.Update(fields.Finish());
}

}  // namespace

json JsonOf(const std::vector<Step>& steps) {
  json list = json::array();
  for (const Step& step : steps) {
    list.push_back({{"name", step.name},
                    {"job", JsonOf(step.job)},
                    {"snapshot", step.snapshot},
                    {"inputs_from", step.inputs_from},
                    {"outputs_to", step.outputs_to}});
  }
  return list;
}

json JsonOf(const Sweep& sweep) {
  json parameters = json::array();
  for (const SearchParameter& parameter : sweep.parameters) parameters.push_back(JsonOf(parameter));
  return {{"parameters", std::move(parameters)},
          {"sampling", std::string(Name(sweep.sampling))},
          {"seed", sweep.seed ? json(*sweep.seed) : json(nullptr)},
          {"log_base", sweep.log_base},
          {"maximize", sweep.maximize},
          {"metric", sweep.metric},
          {"early_termination", JsonOf(sweep.early_termination)},
          {"max_trials", sweep.max_trials},
          {"max_concurrent", sweep.max_concurrent},
          {"trial_timeout_seconds", JsonOfDuration(sweep.trial_timeout)}};
}

void ReadSteps(JsonFields& fields, std::vector<Step>& steps) {
  const json* list = fields.Array("steps");
  if (list == nullptr) return;
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string path = absl::StrCat(fields.PathOf("steps"), "[", i, "]");
    JsonFields part((*list)[i], path, Missing::kKeepsDefault);
    Step& step = steps.emplace_back();
    part.Read("name", step.name);
    part.Read("snapshot", step.snapshot);
    part.Read("inputs_from", step.inputs_from);
    part.Read("outputs_to", step.outputs_to);
    part.Ignore("job");
    if ((*list)[i].is_object() && (*list)[i].contains("job")) {
      part.Update(ReadJobSpec((*list)[i]["job"], path + ".job", step.job));
    }
    fields.Update(part.Finish());
  }
}

void ReadSweepField(const json& document, JsonFields& fields, std::optional<Sweep>& sweep) {
  fields.Ignore("sweep");
  if (!document.is_object() || !document.contains("sweep")) return;
  if (!document["sweep"].is_object()) return fields.Fail("sweep must be an object");
  ReadSweepObject(document["sweep"], fields, sweep.emplace());
}

}  // namespace tutti::spec
