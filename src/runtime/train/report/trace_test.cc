#include "runtime/train/report/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tutti::train {
namespace {

TEST(Trace, LaysTheStepsPartsOneAfterTheOther) {
  Trace trace(100);
  trace.Begin(absl::Seconds(50));
  trace.AddStep(
      7, {.data = 1, .forward = 2, .backward = 3, .communication = 4, .optimizer = 5, .other = 6},
      absl::Seconds(50 + 21));
  const auto spans = trace.Spans();
  ASSERT_EQ(spans.size(), kStepParts.size());
  double end = 0;
  for (const TraceSpan& span : spans) {
    EXPECT_DOUBLE_EQ(span.begin, end);
    EXPECT_EQ(span.detail, 7);
    end = span.begin + span.seconds;
  }
  EXPECT_DOUBLE_EQ(end, 21);
  EXPECT_EQ(spans[0].seconds, 6) << "what lies between the steps comes first";
}

TEST(Trace, KeepsTheLatestInTheirOrder) {
  Trace trace(3);
  for (int i = 0; i < 8; ++i) trace.Add(SpanKind::kAllReduce, 0.5, absl::Seconds(i), 100 + i);
  const auto spans = trace.Spans();
  ASSERT_EQ(spans.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(spans[i].detail, 105 + i);
  trace.Begin(absl::ZeroDuration());
  EXPECT_TRUE(trace.Spans().empty());
}

TEST(ChromeTrace, IsAProcessARankWithAThreadForCommunication) {
  Trace trace(10);
  trace.Add(SpanKind::kAllReduce, 0.5, absl::Seconds(2), 4096);
  trace.Add(SpanKind::kPart0, 0.25, absl::Seconds(3), 12);
  const std::vector<std::vector<TraceSpan>> ranks = {{}, trace.Spans()};
  const auto json = nlohmann::json::parse(ChromeTrace(ranks));
  std::vector<nlohmann::json> spans;
  for (const auto& event : json["traceEvents"]) {
    EXPECT_TRUE(event["ph"] == "M" || event["ph"] == "X");
    if (event["ph"] == "X") spans.push_back(event);
  }
  EXPECT_EQ(json["traceEvents"].size(), 2u * 3 + 2);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0], nlohmann::json::parse(R"({"name":"all-reduce","cat":"communication","ph":"X",
      "ts":1500000.0,"dur":500000.0,"pid":1,"tid":2,"args":{"bytes":4096}})"));
  EXPECT_EQ(spans[1], nlohmann::json::parse(R"({"name":"data","cat":"step","ph":"X",
      "ts":2750000.0,"dur":250000.0,"pid":1,"tid":0,"args":{"step":12}})"));
}

TEST(ChromeTrace, WhatGoesOnBesideAnotherHasAThreadOfItsOwn) {
  Trace trace(10);
  trace.Add(SpanKind::kSend, 1, absl::Seconds(2), 1);       // 1 to 2
  trace.Add(SpanKind::kReceive, 1, absl::Seconds(2.5), 2);  // 1.5 to 2.5
  trace.Add(SpanKind::kSend, 0.5, absl::Seconds(3), 3);     // 2.5 to 3
  const auto json =
      nlohmann::json::parse(ChromeTrace(std::vector<std::vector<TraceSpan>>{trace.Spans()}));
  std::vector<int> threads, named;
  for (const auto& event : json["traceEvents"]) {
    (event["ph"] == "X" ? threads : named).push_back(event["tid"]);
  }
  EXPECT_EQ(threads, (std::vector{2, 3, 2}));
  EXPECT_EQ(named, (std::vector{0, 0, 2, 3}));
}

}  // namespace
}  // namespace tutti::train
