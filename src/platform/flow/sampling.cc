#include "platform/flow/sampling.h"

#include <algorithm>
#include <utility>

#include "platform/flow/distribution.h"
#include "platform/flow/random.h"
#include "platform/flow/sobol.h"

namespace tutti::flow {
namespace {

using spec::Sampling;
using spec::SearchParameter;
using spec::Sweep;

constexpr size_t kRandomFirst = 10;      // trials before Parzen's estimator has something to say
constexpr int64_t kMostUnordered = 100;  // values of a choice that are counted one by one

// All points of a grid, not above the greatest number.
int64_t GridSize(const Sweep& sweep) {
  int64_t size = 1;
  for (const SearchParameter& parameter : sweep.parameters) {
    size *= std::max<int64_t>(CountOf(parameter), 1);
    if (size > sweep.max_trials) return sweep.max_trials;
  }
  return size;
}

// The last parameter changes fastest.
Values GridPoint(const Sweep& sweep, int64_t index) {
  Values values(sweep.parameters.size());
  for (size_t i = values.size(); i-- > 0;) {
    const auto& choices = sweep.parameters[i].values;
    const int64_t count = std::max<int64_t>(std::ssize(choices), 1);
    values[i] = choices.empty() ? "" : choices[index % count];
    index /= count;
  }
  return values;
}

// Sobol's point, shifted by bits that are the seed's (a random digital shift: it stays as even).
double SobolQuantile(uint64_t seed, int number, size_t dimension) {
  const auto shift = static_cast<uint32_t>(BitsAt(seed, 0, dimension) >> 32);
  const uint32_t bits =
      SobolBits(static_cast<uint32_t>(number - 1), static_cast<int>(dimension)) ^ shift;
  return (static_cast<double>(bits) + 0.5) / 4294967296.0;
}

// The observations from the best on.
std::vector<Observation> Ranked(const Sweep& sweep, std::vector<Observation> seen) {
  std::stable_sort(seen.begin(), seen.end(), [&](const Observation& a, const Observation& b) {
    return sweep.maximize ? a.metric > b.metric : a.metric < b.metric;
  });
  return seen;
}

Parzen Learned(const Sweep& sweep, size_t dimension, const std::vector<Observation>& ranked) {
  const SearchParameter& parameter = sweep.parameters[dimension];
  ParzenDimension split;
  const int64_t count = CountOf(parameter);
  if (parameter.kind == spec::SearchKind::kChoice && count <= kMostUnordered) split.choices = count;
  const size_t good = std::min<size_t>(25, (ranked.size() + 3) / 4);
  for (size_t i = 0; i < ranked.size(); ++i) {
    const Values& values = *ranked[i].values;
    if (dimension >= values.size()) continue;
    const auto u = QuantileOf(parameter, values[dimension], sweep.log_base);
    if (u) (i < good ? split.good : split.rest).push_back(*u);
  }
  return Parzen(std::move(split));
}

}  // namespace

int TrialCount(const Sweep& sweep) {
  if (sweep.sampling != Sampling::kGrid) return sweep.max_trials;
  return static_cast<int>(std::min<int64_t>(GridSize(sweep), sweep.max_trials));
}

Sampler::Sampler(const Sweep& sweep, uint64_t seed, const std::vector<Observation>& seen)
    : sweep_(sweep), seed_(seed) {
  if (sweep.sampling != Sampling::kBayesian || seen.size() < kRandomFirst) return;
  const std::vector<Observation> ranked = Ranked(sweep, seen);
  for (size_t i = 0; i < sweep.parameters.size(); ++i) {
    learned_.push_back(Learned(sweep, i, ranked));
  }
}

std::optional<Values> Sampler::Propose(int number) const {
  if (number < 1 || number > TrialCount(sweep_)) return std::nullopt;
  if (sweep_.sampling == Sampling::kGrid) return GridPoint(sweep_, number - 1);
  Values values;
  for (size_t i = 0; i < sweep_.parameters.size(); ++i) {
    values.push_back(ValueAt(sweep_.parameters[i], QuantileFor(number, i), sweep_.log_base));
  }
  return values;
}

double Sampler::QuantileFor(int number, size_t dimension) const {
  if (sweep_.sampling == Sampling::kSobol) return SobolQuantile(seed_, number, dimension);
  const auto trial = static_cast<uint64_t>(number);
  return learned_.empty() ? UniformAt(seed_, trial, dimension)
                          : learned_[dimension].Next(seed_, trial, dimension);
}

}  // namespace tutti::flow
