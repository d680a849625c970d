#include "platform/client/follow/progress_bar.h"

#include <gtest/gtest.h>

#include <limits>

#include "platform/client/text/columns.h"

namespace tutti::client {
namespace {

Metric Step() {
  Metric m;
  m.epoch = 3;
  m.epochs = 24;
  m.step = 117;
  m.steps = 936;
  m.loss = 1.4234;
  m.images_per_second = 3209.7;
  m.seconds_left = 41;
  return m;
}

TEST(Bar, FillsByEighths) {
  EXPECT_EQ(Bar(0, 4), "    ");
  EXPECT_EQ(Bar(0.5, 4), "██  ");
  EXPECT_EQ(Bar(1.0 / 32, 4), "▏   ");
  EXPECT_EQ(Bar(1, 4), "████");
  EXPECT_EQ(Bar(7, 2), "██");
  EXPECT_EQ(Bar(-1, 2), "  ");
  EXPECT_EQ(Bar(std::numeric_limits<double>::quiet_NaN(), 2), "  ");
}

TEST(ProgressLine, ShowsHowFarTheTrainingIs) {
  EXPECT_EQ(ProgressLine(Step(), absl::ZeroDuration(), 80),
            "epoch 3/24 ▕█▉             ▏ step 117/936 loss 1.42 · 3,210 images/s · 0:41 left");
}

TEST(ProgressLine, CountsTheTimeLeftDown) {
  EXPECT_NE(ProgressLine(Step(), absl::Seconds(11), 80).find("0:30 left"), std::string::npos);
  EXPECT_NE(ProgressLine(Step(), absl::Seconds(99), 80).find("0:00 left"), std::string::npos);
}

TEST(ProgressLine, FitsEveryWidth) {
  for (int width = 0; width < 200; ++width) {
    EXPECT_LE(Columns(ProgressLine(Step(), absl::ZeroDuration(), width)), width);
  }
}

TEST(ProgressLine, ShowsWhatIsKnown) {
  Metric m;
  m.step = 5;
  EXPECT_EQ(ProgressLine(m, absl::ZeroDuration(), 80), "step 5");
  EXPECT_EQ(PlainProgressLine(Step()),
            "epoch 3/24 step 117/936 loss 1.42 · 3,210 images/s · 0:41 left");
}

}  // namespace
}  // namespace tutti::client
