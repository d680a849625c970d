// LARS and LAMB against their papers' formulas, and the kernels that they share.
// Covers: lars.cc, lamb.cc, bucket_layers.cc, kernels/layerwise_kernel.cc,
// kernels/parallel_update.h.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "runtime/train/optimizer/lamb.h"
#include "runtime/train/optimizer/lars.h"

namespace tutti::train {
namespace {

enum class Kind { kLars, kLamb };

struct LayerwiseCase {
  Kind kind;
  double weight_decay;
  bool as_on_a_gpu;
  torch::ScalarType type;
};

constexpr double kRate = 0.05, kMomentum = 0.8, kTrust = 0.02, kBeta1 = 0.8, kBeta2 = 0.95,
                 kEpsilon = 1e-6;

std::unique_ptr<parallel::Optimizer> Make(Kind kind, const parallel::Buckets& buckets,
                                          double decay) {
  if (kind == Kind::kLars) {
    return std::make_unique<Lars>(
        buckets, LarsCoefficients{.momentum = kMomentum, .weight_decay = decay, .trust = kTrust});
  }
  return std::make_unique<Lamb>(
      buckets, AdamCoefficients{
                   .beta1 = kBeta1, .beta2 = kBeta2, .epsilon = kEpsilon, .weight_decay = decay});
}

// The papers' formulas for one parameter, in fp64.
struct PaperReference {
  torch::Tensor value, velocity, first, second;

  explicit PaperReference(const torch::Tensor& parameter)
      : value(parameter.detach().to(torch::kFloat64).clone()),
        velocity(torch::zeros_like(value)),
        first(torch::zeros_like(value)),
        second(torch::zeros_like(value)) {}

  static double Norm(const torch::Tensor& tensor) {
    return std::sqrt(tensor.square().sum().item<double>());
  }

  void Lars(const torch::Tensor& g, double decay) {
    const bool is_layer = value.dim() > 1;
    if (!is_layer) decay = 0;
    const double of_value = Norm(value), of_gradient = Norm(g);
    const double local = is_layer && of_value > 0 && of_gradient > 0
                             ? kTrust * of_value / (of_gradient + decay * of_value)
                             : 1;
    velocity = kMomentum * velocity + local * (g + decay * value);
    value = value - kRate * velocity;
  }

  void Lamb(const torch::Tensor& g, double decay, int t) {
    const bool is_layer = value.dim() > 1;
    if (!is_layer) decay = 0;
    first = kBeta1 * first + (1 - kBeta1) * g;
    second = kBeta2 * second + (1 - kBeta2) * g * g;
    const auto m = first / (1 - std::pow(kBeta1, t)), v = second / (1 - std::pow(kBeta2, t));
    const auto r = m / (v.sqrt() + kEpsilon) + decay * value;
    const double of_value = Norm(value), of_update = Norm(r);
    const double ratio = is_layer && of_value > 0 && of_update > 0 ? of_value / of_update : 1;
    value = value - kRate * ratio * r;
  }
};

// Parameters of all kinds, in the order in which buckets have them; "zero" begins at a norm of 0,
// and "still" never has a gradient.
std::vector<parallel::NamedParameter> SomeParameters(torch::ScalarType type) {
  torch::manual_seed(1);
  std::vector<parallel::NamedParameter> parameters = {
      {"fc.bias", torch::randn({7})},
      {"fc.weight", torch::randn({7, 5}) * 3},
      {"zero", torch::zeros({3, 4})},
      {"still", torch::randn({4, 4})},
      {"conv.weight", torch::randn({33, 3, 3, 3}) * 0.1},
      {"bn.bias", torch::zeros({33})},
      {"bn.weight", torch::ones({33})},
      {"large", torch::randn({300, 33}) * 0.01}};
  for (auto& parameter : parameters) {
    parameter.tensor = parameter.tensor.to(type).set_requires_grad(true);
  }
  return parameters;
}

parallel::Buckets BucketOf(const std::vector<parallel::NamedParameter>& parameters) {
  parallel::Buckets buckets;
  buckets.push_back(std::make_unique<parallel::Bucket>(parameters, 3));
  return buckets;
}

class Layerwise : public testing::TestWithParam<LayerwiseCase> {};

TEST_P(Layerwise, EqualsThePapersFormulas) {
  const LayerwiseCase& c = GetParam();
  auto parameters = SomeParameters(c.type);
  std::vector<PaperReference> references;
  for (const auto& parameter : parameters) references.emplace_back(parameter.tensor);
  const auto buckets = BucketOf(parameters);
  if (c.as_on_a_gpu) {
    buckets[0]->found_nonfinite = torch::zeros({1});
    buckets[0]->copy = torch::zeros({buckets[0]->size()}, torch::kBFloat16);
  }
  const auto optimizer = Make(c.kind, buckets, c.weight_decay);
  for (int step = 1; step <= 6; ++step) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      torch::Tensor gradient = torch::randn_like(parameters[i].tensor).detach() * step;
      if (parameters[i].name == "still") gradient.zero_();
      parameters[i].tensor.mutable_grad().copy_(gradient);
      gradient = gradient.to(torch::kFloat64);
      c.kind == Kind::kLars ? references[i].Lars(gradient, c.weight_decay)
                            : references[i].Lamb(gradient, c.weight_decay, step);
    }
    optimizer->Step(kRate);
  }
  const double tolerance = c.type == torch::kFloat64 ? 1e-12 : 2e-5;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto ours = parameters[i].tensor.detach().to(torch::kFloat64);
    const double difference = PaperReference::Norm(ours - references[i].value);
    EXPECT_LE(difference, tolerance * PaperReference::Norm(references[i].value))
        << parameters[i].name;
  }
  if (c.as_on_a_gpu) {
    EXPECT_TRUE(buckets[0]->copy.equal(buckets[0]->values().to(torch::kBFloat16)));
  }
  const int64_t next = buckets[0]->slots()[1].offset;
  EXPECT_TRUE(buckets[0]->values().slice(0, 7, next).eq(0).all().item<bool>()) << "padding";
}

std::vector<LayerwiseCase> AllLayerwiseCases() {
  std::vector<LayerwiseCase> cases;
  for (const Kind kind : {Kind::kLars, Kind::kLamb}) {
    for (const double decay : {0.0, 0.1}) {
      for (const bool as_on_a_gpu : {false, true}) {
        for (const auto type : {torch::kFloat32, torch::kFloat64}) {
          cases.push_back({kind, decay, as_on_a_gpu, type});
        }
      }
    }
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, Layerwise, testing::ValuesIn(AllLayerwiseCases()));

// What the ratio is for.
TEST(LayerwiseOptimizers, TheFirstStepIsAsLongAsTheWeightsAskWhateverTheGradient) {
  for (const Kind kind : {Kind::kLars, Kind::kLamb}) {
    for (const double scale : {1e-3, 1.0, 1e3}) {
      torch::manual_seed(2);
      auto weight = torch::randn({20, 30}).set_requires_grad(true);
      const torch::Tensor before = weight.detach().clone();
      const auto buckets = BucketOf({{"weight", weight}});
      weight.mutable_grad().copy_(torch::randn({20, 30}) * scale);
      Make(kind, buckets, 0)->Step(kRate);
      const double part =
          PaperReference::Norm(weight.detach() - before) / PaperReference::Norm(before);
      EXPECT_NEAR(part, kind == Kind::kLars ? kRate * kTrust : kRate, 1e-6) << scale;
    }
  }
}

TEST(LayerwiseOptimizers, ABucketWithANonfiniteGradientStaysAsItIs) {
  for (const Kind kind : {Kind::kLars, Kind::kLamb}) {
    auto weight = torch::ones({4, 4}).set_requires_grad(true);
    const auto buckets = BucketOf({{"weight", weight}});
    buckets[0]->found_nonfinite = torch::ones({1});
    const auto optimizer = Make(kind, buckets, 0.1);
    weight.mutable_grad().fill_(std::numeric_limits<float>::quiet_NaN());
    optimizer->Step(0.1);
    EXPECT_TRUE(weight.eq(1).all().item<bool>());
    for (const auto& [name, tensor] : parallel::ByName(optimizer->state())) {
      EXPECT_TRUE(name == "updates" || tensor.eq(0).all().item<bool>()) << name;
    }
  }
}

// A gradient so small that the ratio is more than fp32 holds, and 0 in places.
TEST(LayerwiseOptimizers, AVanishingGradientLeavesTheWeightsFinite) {
  for (const Kind kind : {Kind::kLars, Kind::kLamb}) {
    for (const bool as_on_a_gpu : {false, true}) {
      auto weight = torch::full({2, 2}, 1e8f).set_requires_grad(true);
      const auto buckets = BucketOf({{"weight", weight}});
      if (as_on_a_gpu) buckets[0]->found_nonfinite = torch::zeros({1});
      weight.mutable_grad()[0][0] = std::numeric_limits<float>::denorm_min();
      const auto optimizer = Make(kind, buckets, 0);
      optimizer->Step(0.1);
      EXPECT_TRUE(weight.isfinite().all().item<bool>()) << as_on_a_gpu;
    }
  }
}

// A run of 2 + 3 steps, its memory taken over in between, is one of 5.
TEST(LayerwiseOptimizers, GoOnFromTheirState) {
  for (const Kind kind : {Kind::kLars, Kind::kLamb}) {
    auto whole = SomeParameters(torch::kFloat32), part = SomeParameters(torch::kFloat32);
    const auto of_whole = BucketOf(whole), of_part = BucketOf(part);
    const auto reference = Make(kind, of_whole, 0.1), before = Make(kind, of_part, 0.1),
               after = Make(kind, of_part, 0.1);
    const auto steps = [](parallel::Optimizer& optimizer,
                          std::vector<parallel::NamedParameter>& parameters, int first, int last) {
      for (int step = first; step < last; ++step) {
        torch::manual_seed(step);
        for (auto& parameter : parameters) {
          parameter.tensor.mutable_grad().copy_(torch::randn_like(parameter.tensor).detach());
        }
        optimizer.Step(kRate);
      }
    };
    steps(*reference, whole, 0, 5);
    steps(*before, part, 0, 2);
    auto state = parallel::ByName(after->state());
    for (const auto& each : before->state()) state.at(each.name).copy_(each.tensor);
    steps(*after, part, 2, 5);
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_TRUE(part[i].tensor.equal(whole[i].tensor)) << whole[i].name;
    }
  }
}

// Compares updates of float or double, at lengths that blocks, lanes and threads' parts do not
// divide.
template <typename T>
void ExpectTheSameBits(size_t count) {
  torch::manual_seed(4);
  const auto type = std::is_same_v<T, float> ? torch::kFloat32 : torch::kFloat64;
  const auto start = torch::rand({4, static_cast<int64_t>(count)}, type);
  using Update = std::function<void(torch::Tensor&, int)>;
  const Update lars = [&](torch::Tensor& s, int threads) {
    LarsUpdate(s[0].mutable_data_ptr<T>(), s[1].mutable_data_ptr<T>(), s[3].const_data_ptr<T>(),
               count, {.learning_rate = 0.1, .weight_decay = 0.01}, threads);
  };
  const Update lamb = [&](torch::Tensor& s, int threads) {
    LambUpdate(s[0].mutable_data_ptr<T>(), s[1].mutable_data_ptr<T>(), s[2].mutable_data_ptr<T>(),
               s[3].const_data_ptr<T>(), count, {.weight_decay = 0.01}, 3, threads);
  };
  for (const Update& update : {lars, lamb}) {
    torch::Tensor one = start.clone();
    update(one, 1);
    EXPECT_FALSE(torch::equal(one, start));
    for (const int threads : {2, 3, 4}) {
      torch::Tensor several = start.clone();
      update(several, threads);
      EXPECT_TRUE(torch::equal(several, one)) << threads << " threads, " << count;
    }
  }
}

TEST(LayerwiseKernels, HaveTheSameBitsForAnyNumberOfThreads) {
  for (const size_t count : {7, 1025, 300001}) {
    ExpectTheSameBits<float>(count);
    ExpectTheSameBits<double>(count);
  }
}

}  // namespace
}  // namespace tutti::train
