#include "platform/service/flow/trial.h"

#include "base/hash.h"

namespace tutti::service {

uint64_t SeedOf(const store::Job& sweep) {
  if (sweep.spec.sweep->seed) return static_cast<uint64_t>(*sweep.spec.sweep->seed);
  const base::Sha256Digest digest = base::Sha256Of(sweep.id);
  uint64_t seed = 0;
  for (int i = 0; i < 8; ++i) seed = seed << 8 | digest[i];
  return seed;
}

flow::Values ValuesOf(const spec::Sweep& sweep, const spec::JobSpec& trial) {
  flow::Values values;
  for (const spec::SearchParameter& parameter : sweep.parameters) {
    const auto input = trial.inputs.find(parameter.name);
    values.push_back(input == trial.inputs.end() ? "" : input->second.literal);
  }
  return values;
}

std::optional<double> CostOf(const spec::Sweep& sweep, std::optional<double> metric) {
  return metric && sweep.maximize ? std::optional(0 - *metric) : metric;  // never -0
}

std::optional<double> MetricOf(const spec::Sweep& sweep, std::optional<double> cost) {
  return CostOf(sweep, cost);  // which is its own inverse
}

spec::JobSpec TrialSpec(const spec::JobSpec& sweep, int number, const flow::Values& values) {
  spec::JobSpec trial = sweep;
  trial.kind = spec::JobKind::kCommand;
  trial.sweep.reset();
  trial.timeout = sweep.sweep->trial_timeout;
  trial.display_name = flow::TrialName(number);
  for (size_t i = 0; i < values.size(); ++i) {
    trial.inputs[sweep.sweep->parameters[i].name].literal = values[i];
  }
  return trial;
}

}  // namespace tutti::service
