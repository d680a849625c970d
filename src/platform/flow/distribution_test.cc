// Covers: random.h.
#include "platform/flow/distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "platform/flow/random.h"

namespace tutti::flow {
namespace {

using spec::SearchKind;
using spec::SearchParameter;

constexpr double kE = 2.718281828459045;

double NumberAt(const SearchParameter& parameter, double u, double base = kE) {
  double value = NAN;
  EXPECT_TRUE(absl::SimpleAtod(ValueAt(parameter, u, base), &value));
  return value;
}

// Draws of a thousand quantiles, evenly spread: their mean and standard deviation are the
// distribution's.
std::pair<double, double> Moments(const SearchParameter& parameter) {
  double sum = 0, squares = 0;
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = NumberAt(parameter, (i + 0.5) / kDraws);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kDraws;
  return {mean, std::sqrt(squares / kDraws - mean * mean)};
}

TEST(Distribution, NormalQuantilesAreThePublishedOnes) {
  EXPECT_NEAR(NormalQuantile(0.5), 0, 1e-15);
  EXPECT_NEAR(NormalQuantile(0.975), 1.959963984540054, 1e-13);
  EXPECT_NEAR(NormalQuantile(0.001), -3.090232306167813, 1e-12);
  EXPECT_NEAR(NormalQuantile(1e-10), -6.361340902404056, 1e-9);
  EXPECT_NEAR(NormalQuantile(0.8413447460685429), 1, 1e-13);
}

TEST(Distribution, UniformAndItsRoundedAndExponentialForms) {
  const SearchParameter uniform{.kind = SearchKind::kUniform, .low = -1, .high = 3};
  EXPECT_EQ(NumberAt(uniform, 0.25), 0);
  const auto [mean, deviation] = Moments(uniform);
  EXPECT_NEAR(mean, 1, 1e-6);
  EXPECT_NEAR(deviation, 4 / std::sqrt(12), 1e-4);
  const SearchParameter rounded{.kind = SearchKind::kQUniform, .low = 0, .high = 1, .q = 0.1};
  EXPECT_EQ(ValueAt(rounded, 0.31, kE), "0.3");
  EXPECT_EQ(ValueAt(rounded, 0.02, kE), "0.0");
  const SearchParameter log{.kind = SearchKind::kLogUniform, .low = -2, .high = 2};
  EXPECT_NEAR(NumberAt(log, 0.5), 1, 1e-12);
  EXPECT_NEAR(NumberAt(log, 0.75), kE, 1e-12);
  EXPECT_NEAR(NumberAt(log, 0.75, 10), 10, 1e-12);
  const SearchParameter q{.kind = SearchKind::kQLogUniform, .low = 0, .high = 5, .q = 2};
  EXPECT_EQ(NumberAt(q, 0.4), 8);  // exp(2) = 7.39
}

TEST(Distribution, NormalAndItsRoundedAndExponentialForms) {
  const auto [mean, deviation] = Moments({.kind = SearchKind::kNormal, .mu = 10, .sigma = 3});
  EXPECT_NEAR(mean, 10, 1e-6);
  EXPECT_NEAR(deviation, 3, 5e-3);
  EXPECT_EQ(NumberAt({.kind = SearchKind::kQNormal, .mu = 10, .sigma = 3, .q = 5}, 0.9), 15);
  // exp(mu + sigma^2 / 2)
  EXPECT_NEAR(Moments({.kind = SearchKind::kLogNormal, .mu = 1, .sigma = 0.5}).first,
              std::exp(1.125), 5e-3);
  EXPECT_EQ(NumberAt({.kind = SearchKind::kQLogNormal, .mu = 1, .sigma = 0.5, .q = 1}, 0.5), 3);
}

TEST(Distribution, ChoicesAndWholeNumbersComeEvenly) {
  const SearchParameter choice{.kind = SearchKind::kChoice, .values = {"a", "b", "c"}};
  const SearchParameter whole{.kind = SearchKind::kRandInt, .upper = 4};
  std::map<std::string, int> seen;
  for (int i = 0; i < 1200; ++i) {
    const double u = UniformAt(7, i, 0);
    ++seen[ValueAt(choice, u, kE)];
    ++seen[ValueAt(whole, u, kE)];
  }
  EXPECT_EQ(seen.size(), 7u);
  for (const char* name : {"a", "b", "c"}) EXPECT_NEAR(seen[name], 400, 60) << name;
  for (const char* name : {"0", "1", "2", "3"}) EXPECT_NEAR(seen[name], 300, 60) << name;
  EXPECT_EQ(ValueAt(whole, 0.9999999, kE), "3");
}

TEST(Distribution, AQuantileComesBackFromItsValue) {
  for (const SearchKind kind : {SearchKind::kUniform, SearchKind::kLogUniform, SearchKind::kNormal,
                                SearchKind::kLogNormal}) {
    const SearchParameter parameter{.kind = kind, .low = -1, .high = 2, .mu = 1, .sigma = 2};
    for (const double u : {0.01, 0.3, 0.77}) {
      EXPECT_NEAR(*QuantileOf(parameter, ValueAt(parameter, u, 10), 10), u, 1e-9);
    }
  }
  const SearchParameter choice{.kind = SearchKind::kChoice, .values = {"x", "y"}};
  EXPECT_EQ(QuantileOf(choice, "y", kE), 0.75);
  EXPECT_FALSE(QuantileOf(choice, "z", kE).has_value());
}

TEST(Distribution, NumbersAreWrittenAsPythonDoes) {
  EXPECT_EQ(NumberText(0.1), "0.1");
  EXPECT_EQ(NumberText(2), "2.0");
  EXPECT_EQ(NumberText(1e-05), "1e-05");
  EXPECT_EQ(NumberText(-1.5), "-1.5");
}

}  // namespace
}  // namespace tutti::flow
