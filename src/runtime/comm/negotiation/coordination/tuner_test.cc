#include "runtime/comm/negotiation/coordination/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace tutti::comm {
namespace {

// Lets the tuner run against a machine that reduces `rate(setting, seconds)` bytes a second; the
// setting it keeps.
Tuning Settle(Tuner& tuner, Tuning setting,
              const std::function<double(const Tuning&, double)>& rate) {
  double bytes = 0;
  absl::Duration now;
  for (int step = 0; step < 100000 && !tuner.done(); ++step) {
    now += absl::Milliseconds(50);
    bytes += rate(setting, absl::ToDoubleSeconds(now)) * 0.05;
    if (const auto change = tuner.OnProgress(static_cast<uint64_t>(bytes), now)) setting = *change;
  }
  EXPECT_TRUE(tuner.done());
  EXPECT_EQ(setting, tuner.best());
  return setting;
}

// Best at 16 MiB and 4 ms, and worse by a fifth for every doubling away from it.
double Hill(const Tuning& tuning) {
  const double fusion = std::log2((static_cast<double>(tuning.fusion_bytes) + 1) / (16 << 20));
  const double cycle = std::log2((absl::ToDoubleMilliseconds(tuning.cycle_time) + 1e-3) / 4);
  return 1e9 * std::pow(0.8, std::min(std::abs(fusion), 8.0) + std::min(std::abs(cycle), 8.0));
}

TEST(TunerTest, FindsTheTopFromEitherSide) {
  for (const Tuning start :
       {Tuning{64 << 20, absl::Milliseconds(1)}, Tuning{0, absl::ZeroDuration()},
        Tuning{1 << 20, absl::Milliseconds(16)}}) {
    Tuner tuner({}, start);
    const Tuning found = Settle(tuner, start, [](const Tuning& t, double) { return Hill(t); });
    EXPECT_EQ(found.fusion_bytes, 16u << 20);
    EXPECT_EQ(found.cycle_time, absl::Milliseconds(4));
  }
}

TEST(TunerTest, StaysWhereNothingIsBetter) {
  const Tuning start{64 << 20, absl::Milliseconds(1)};
  Tuner tuner({}, start);
  EXPECT_EQ(Settle(tuner, start, [](const Tuning&, double) { return 1e9; }), start);
}

TEST(TunerTest, IsNotMisledByATrainingThatSlowsDown) {
  Tuner tuner({}, {});
  const Tuning found =
      Settle(tuner, {}, [](const Tuning& t, double s) { return Hill(t) * std::exp(-s / 600); });
  EXPECT_EQ(found.fusion_bytes, 16u << 20);
}

TEST(TunerTest, IsNotMisledByAPauseNowAndThen) {
  Tuner tuner({}, {});
  const Tuning found = Settle(tuner, {}, [](const Tuning& t, double s) {
    return std::fmod(s, 20) < 0.5 ? 0 : Hill(t);  // a validation
  });
  EXPECT_EQ(found.fusion_bytes, 16u << 20);
}

TEST(TunerTest, TellsEveryMeasurement) {
  Tuner tuner({}, {});
  Settle(tuner, {}, [](const Tuning& t, double) { return Hill(t); });
  const std::string log = tuner.TakeLog();
  EXPECT_EQ(log.substr(0, log.find('\n')).find("67108864,1,"), 0u);
  EXPECT_NE(log.find("better"), std::string::npos);
  EXPECT_NE(log.find("16777216,4,"), std::string::npos) << log;
  EXPECT_NE(log.find(",kept\n"), std::string::npos) << log;
}

}  // namespace
}  // namespace tutti::comm
