// Covers: parzen.cc, sobol.cc.
#include "platform/flow/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/numbers.h"
#include "platform/flow/sobol.h"

namespace tutti::flow {
namespace {

using spec::Sampling;
using spec::SearchKind;
using spec::SearchParameter;
using spec::Sweep;
using ::testing::ElementsAre;

Sweep Plane(Sampling sampling) {
  Sweep sweep;
  sweep.sampling = sampling;
  sweep.parameters = {{.name = "x", .kind = SearchKind::kUniform, .low = 0, .high = 1},
                      {.name = "y", .kind = SearchKind::kUniform, .low = 0, .high = 1}};
  return sweep;
}

double Number(const std::string& text) {
  double value = NAN;
  EXPECT_TRUE(absl::SimpleAtod(text, &value)) << text;
  return value;
}

TEST(Propose, IsAFunctionOfSeedAndNumber) {
  for (const Sampling sampling : {Sampling::kRandom, Sampling::kSobol, Sampling::kBayesian}) {
    const Sweep sweep = Plane(sampling);
    EXPECT_EQ(Propose(sweep, 1, 5, {}), Propose(sweep, 1, 5, {}));
    EXPECT_NE(Propose(sweep, 1, 5, {}), Propose(sweep, 2, 5, {}));
    EXPECT_NE(Propose(sweep, 1, 5, {}), Propose(sweep, 1, 6, {}));
  }
}

TEST(Propose, StopsAtTheLimitOfTrials) {
  Sweep sweep = Plane(Sampling::kRandom);
  sweep.max_trials = 3;
  EXPECT_TRUE(Propose(sweep, 1, 3, {}).has_value());
  EXPECT_FALSE(Propose(sweep, 1, 4, {}).has_value());
}

TEST(Propose, AGridHasEveryPointOnceTheLastParameterFirst) {
  Sweep sweep;
  sweep.sampling = Sampling::kGrid;
  sweep.parameters = {{.name = "a", .values = {"1", "2"}},
                      {.name = "b", .values = {"x", "y", "z"}}};
  EXPECT_EQ(TrialCount(sweep), 6);
  EXPECT_THAT(*Propose(sweep, 0, 1, {}), ElementsAre("1", "x"));
  EXPECT_THAT(*Propose(sweep, 0, 2, {}), ElementsAre("1", "y"));
  EXPECT_THAT(*Propose(sweep, 0, 6, {}), ElementsAre("2", "z"));
  EXPECT_FALSE(Propose(sweep, 0, 7, {}).has_value());
  sweep.max_trials = 4;
  EXPECT_EQ(TrialCount(sweep), 4);
}

// Joe and Kuo's own program prints these points for their table.
TEST(Sobol, GivesThePublishedPoints) {
  const auto at = [](uint32_t index, int dimension) {
    return SobolBits(index, dimension) / 4294967296.0;
  };
  const double expected[][4] = {{0, 0, 0, 0},
                                {0.5, 0.5, 0.5, 0.5},
                                {0.75, 0.25, 0.25, 0.25},
                                {0.25, 0.75, 0.75, 0.75},
                                {0.375, 0.375, 0.625, 0.875},
                                {0.875, 0.875, 0.125, 0.375},
                                {0.625, 0.125, 0.875, 0.625},
                                {0.125, 0.625, 0.375, 0.125}};
  for (uint32_t i = 0; i < 8; ++i) {
    for (int d = 0; d < 4; ++d) EXPECT_EQ(at(i, d), expected[i][d]) << i << " " << d;
  }
}

TEST(Sobol, EachDimensionHasOnePointInEachOf256Cells) {
  for (int dimension = 0; dimension < kSobolDimensions; ++dimension) {
    std::set<uint32_t> cells;
    for (uint32_t i = 0; i < 256; ++i) cells.insert(SobolBits(i, dimension) >> 24);
    EXPECT_EQ(cells.size(), 256u) << dimension;
  }
}

// A shift keeps the elementary intervals: 16 by 16 points, one in each cell of every such cut.
TEST(Propose, SobolCoversThePlaneEvenlyWithAnySeed) {
  const Sweep sweep = Plane(Sampling::kSobol);
  for (const uint64_t seed : {0, 42}) {
    std::set<std::pair<int, int>> cells;
    for (int number = 1; number <= 256; ++number) {
      const Values values = *Propose(sweep, seed, number, {});
      cells.emplace(static_cast<int>(Number(values[0]) * 16),
                    static_cast<int>(Number(values[1]) * 16));
    }
    EXPECT_EQ(cells.size(), 256u);
  }
}

TEST(Propose, RandomFillsTheIntervalEvenly) {
  const Sweep sweep = Plane(Sampling::kRandom);
  int below = 0;
  for (int number = 1; number <= 1000; ++number) {
    below += Number((*Propose(sweep, 3, number, {}))[1]) < 0.25;
  }
  EXPECT_NEAR(below, 250, 45);
}

// Distance to a point, over the mean of seeds: what bayesian sampling is for.
double BestAfter(const Sweep& sweep, uint64_t seed, int trials) {
  std::vector<Observation> seen;
  double best = 10;
  for (int number = 1; number <= trials; ++number) {
    const Values values = *Propose(sweep, seed, number, seen);
    const double x = Number(values[0]) - 0.3, y = Number(values[1]) - 0.7;
    const double loss = x * x + y * y + (values[2] == "good" ? 0 : 0.5);
    seen.push_back({std::make_shared<const Values>(values), loss});
    best = std::min(best, loss);
  }
  return best;
}

TEST(Propose, BayesianComesNearerThanRandomWithTheSameTrials) {
  Sweep bayesian = Plane(Sampling::kBayesian), random = Plane(Sampling::kRandom);
  for (Sweep* sweep : {&bayesian, &random}) {
    sweep->parameters.push_back({.name = "z", .values = {"a", "b", "good", "c"}});
  }
  double with = 0, without = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    with += std::log(BestAfter(bayesian, seed, 60));
    without += std::log(BestAfter(random, seed, 60));
  }
  EXPECT_LT(with / 10, without / 10 - 2) << "less than e squared times as near";
}

TEST(Sampler, ProposesEachOfManyTrialsAsIfItWereAlone) {
  Sweep sweep = Plane(Sampling::kBayesian);
  sweep.parameters.push_back({.name = "z", .values = {"a", "b", "good", "c"}});
  std::vector<Observation> seen;
  for (int number = 1; number <= 40; ++number) {
    const Values values = *Propose(sweep, 5, number, seen);
    seen.push_back({std::make_shared<const Values>(values), Number(values[0])});
  }
  const Sampler sampler(sweep, 5, seen);
  std::set<std::string> different;
  for (int number = 41; number <= 60; ++number) {
    EXPECT_EQ(sampler.Propose(number), Propose(sweep, 5, number, seen));
    different.insert(sampler.Propose(number)->at(0));
  }
  EXPECT_GT(different.size(), 15u);
  EXPECT_FALSE(sampler.Propose(sweep.max_trials + 1).has_value());
}

TEST(Propose, BayesianMaximisesWhenToldTo) {
  Sweep sweep = Plane(Sampling::kBayesian);
  sweep.maximize = true;
  std::vector<Observation> seen;
  double sum = 0;
  for (int number = 1; number <= 60; ++number) {
    const Values values = *Propose(sweep, 5, number, seen);
    seen.push_back({std::make_shared<const Values>(values), Number(values[0])});
    if (number > 40) sum += Number(values[0]);
  }
  EXPECT_GT(sum / 20, 0.8);
}

}  // namespace
}  // namespace tutti::flow
