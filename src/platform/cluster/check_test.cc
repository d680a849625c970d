#include "platform/cluster/check.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace tutti::cluster {
namespace {

using ::testing::HasSubstr;

NodeReport FitNode(const std::string& host) {
  NodeReport report;
  report.host = host;
  report.free_mib = {{"/tmp", 5000}};
  report.sent_mb_per_second = 1000;
  return report;
}

// Of `reports`, what is not well: "h2 clock failed".
std::vector<std::string> Amiss(const std::vector<NodeReport>& reports) {
  std::vector<std::string> amiss;
  for (const Finding& finding : Judge(reports)) {
    if (finding.outcome == Finding::Outcome::kOk) continue;
    EXPECT_FALSE(finding.mend.empty()) << finding.name;
    const bool failed = finding.outcome == Finding::Outcome::kFailed;
    amiss.push_back(absl::StrCat(finding.host, " ", finding.name, failed ? " failed" : " warning"));
  }
  return amiss;
}

TEST(Check, FindsNothingAmissInFitNodes) {
  EXPECT_THAT(Amiss({FitNode("h1"), FitNode("h2")}), testing::IsEmpty());
  EXPECT_THAT(Amiss({FitNode("alone")}), testing::IsEmpty());
}

TEST(Check, NamesEachFaultWithItsMend) {
  NodeReport ill = FitNode("h2");
  ill.clock_ahead = -3;
  ill.unknown_names = {"h1"};
  ill.refused_ports = {"h1:6818"};
  ill.free_mib["/var/log"] = 10;
  ill.gpu_without_driver = true;
  ill.sent_mb_per_second = 100;
  EXPECT_THAT(Amiss({FitNode("h1"), ill, FitNode("h3")}),
              testing::ElementsAre("h2 clock failed", "h2 names warning", "h2 ports failed",
                                   "h2 disk failed", "h2 devices failed", "h2 bandwidth warning"));
}

TEST(Check, BlamesNoClockThatASlowAnswerMayExplain) {
  NodeReport slow = FitNode("h1");
  slow.clock_ahead = 1.5;
  slow.clock_unsure = 0.8;
  EXPECT_THAT(Amiss({slow}), testing::IsEmpty());
}

TEST(Check, WantsInfiniBandActive) {
  NodeReport ill = FitNode("h1");
  ill.links = {{"mlx5_0/1", "ACTIVE"}, {"mlx5_1/1", "DOWN"}};
  EXPECT_THAT(Amiss({ill}), testing::ElementsAre("h1 devices failed"));
}

TEST(Check, ReadsAReportAndRefusesHalfOfOne) {
  const auto report = ReadReport("h1",
                                 "unknown=h2\nrefused=h2:6818\ndisk=70 /tmp\nlink=mlx5_0/1 DOWN\n"
                                 "driver=none\nsent=941.5\nend=yes\n");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->unknown_names, testing::ElementsAre("h2"));
  EXPECT_EQ(report->free_mib.at("/tmp"), 70);
  EXPECT_EQ(report->links.at("mlx5_0/1"), "DOWN");
  EXPECT_TRUE(report->gpu_without_driver);
  EXPECT_DOUBLE_EQ(report->sent_mb_per_second, 941.5);
  EXPECT_THAT(ReadReport("h1", "disk=70 /tmp\n").status().message(), HasSubstr("h1: its checks"));
}

}  // namespace
}  // namespace tutti::cluster
