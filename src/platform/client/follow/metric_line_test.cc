#include "platform/client/follow/metric_line.h"

#include <gtest/gtest.h>

namespace tutti::client {
namespace {

TEST(Metric, SaysWhatIsTrained) {
  const auto metric = ParseMetric(
      R"({"event": "start", "model": "resnet20", "parameters": 272474, "train_images": 5000,
          "world_size": 2, "global_batch": 128, "epochs": 24, "steps": 936, "precision": "bf16"})");
  ASSERT_TRUE(metric.has_value());
  EXPECT_EQ(MetricLine(*metric),
            "training resnet20 · 272,474 parameters · 5,000 images · 2 ranks · batch 128 · "
            "24 epochs · 936 steps · bf16");
}

TEST(Metric, SaysHowGoodItIs) {
  EXPECT_EQ(MetricLine(*ParseMetric(R"({"event": "evaluation", "epoch": 3, "top1": 0.612,
                                        "top5": 0.95, "loss": 1.0625, "images": 1000})")),
            "epoch 3: top-1 61.20 % · top-5 95.00 % · loss 1.062 on 1,000 images");
  EXPECT_EQ(
      MetricLine(*ParseMetric(R"({"event": "result", "map50": 0.75, "map": 0.5, "images": 16})")),
      "result: mAP@0.5 75.00 % · mAP 50.00 % on 16 images");
  EXPECT_EQ(MetricLine(*ParseMetric(R"({"event": "checkpoint", "step": 40, "bytes": 2200000,
                                        "seconds": 0.12})")),
            "checkpoint at step 40: 2.20 MB in 0.12 s");
}

TEST(Metric, WhatIsNoMetricIsLeftAlone) {
  for (const char* text :
       {"", "loss 1.5", "[]", "{}", R"({"event": 5})", R"({"event": "other"})"}) {
    EXPECT_FALSE(ParseMetric(text).has_value()) << text;
  }
}

TEST(Metric, OddNumbersAreNoNumbers) {
  const auto metric =
      ParseMetric(R"({"event": "step", "step": -5, "steps": 1e300, "loss": "nan", "epoch": null})");
  ASSERT_TRUE(metric.has_value());
  EXPECT_FALSE(metric->step || metric->steps || metric->loss || metric->epoch);
}

}  // namespace
}  // namespace tutti::client
