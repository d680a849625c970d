// Covers: host_facts.cc.
#include "platform/cluster/check.h"

#include <gmock/gmock.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tutti::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

NodeReport FitNode(const std::string& host) {
  NodeReport report;
  report.host = host;
  report.free_mib = {{"/tmp", 5000}};
  report.sent_mb_per_second = 1000;
  return report;
}

// Returns what is not well in `reports`, as "h2 clock failed".
std::vector<std::string> Amiss(const std::vector<NodeReport>& reports) {
  std::vector<std::string> amiss;
  for (const Finding& finding : Judge(reports)) {
    if (finding.outcome == Finding::Outcome::kOk) continue;
    EXPECT_FALSE(finding.remedy.empty()) << finding.name;
    const bool failed = finding.outcome == Finding::Outcome::kFailed;
    amiss.push_back(absl::StrCat(finding.host, " ", finding.name, failed ? " failed" : " warning"));
  }
  return amiss;
}

TEST(Check, FindsNothingAmissInFitNodes) {
  EXPECT_THAT(Amiss({FitNode("h1"), FitNode("h2")}), testing::IsEmpty());
  EXPECT_THAT(Amiss({FitNode("alone")}), testing::IsEmpty());
}

TEST(Check, NamesEachFaultWithItsRemedy) {
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

TEST(Check, ComparesClocksWithTheControllers) {
  NodeReport controller = FitNode("h1"), node = FitNode("h2");
  controller.clock_ahead = node.clock_ahead = 3600;
  controller.controller = true;
  EXPECT_THAT(Amiss({controller, node}), testing::IsEmpty());
  node.clock_ahead = 0;
  EXPECT_THAT(Amiss({controller, node}), testing::ElementsAre("h2 clock failed"));
}

TEST(Check, WantsAnInfiniBandPortActiveAndWarnsOfOneThatIsNot) {
  NodeReport ill = FitNode("h1");
  ill.links = {{"mlx5_0/1", "ACTIVE"}, {"mlx5_1/1", "DOWN"}};
  EXPECT_THAT(Amiss({ill}), testing::ElementsAre("h1 devices warning"));
  ill.links["mlx5_0/1"] = "INIT";
  EXPECT_THAT(Amiss({ill}), testing::ElementsAre("h1 devices failed"));
  ill.gpu_without_driver = true;
  for (const Finding& finding : Judge({ill})) {
    if (finding.name != "devices") continue;
    EXPECT_EQ(finding.detail,
              "mlx5_0/1 is INIT, mlx5_1/1 is DOWN; a GPU whose driver does not answer");
    EXPECT_THAT(finding.remedy, AllOf(HasSubstr("ibstat"), HasSubstr("nvidia-driver")));
  }
}

TEST(Check, ReadsAReportAndRefusesHalfOfOne) {
  const auto report =
      ReadReport("h1",
                 "unknown=h2\nrefused=h2:6818\ndisk=70 /tmp\nlink=mlx5_0/1 DOWN\n"
                 "driver=none\n"
                 "bandwidth={\"megabytes_per_second\": 941.5, \"microseconds\": 20}\n"
                 "end=yes\n");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->unknown_names, testing::ElementsAre("h2"));
  EXPECT_EQ(report->free_mib.at("/tmp"), 70);
  EXPECT_EQ(report->links.at("mlx5_0/1"), "DOWN");
  EXPECT_TRUE(report->gpu_without_driver);
  EXPECT_DOUBLE_EQ(report->sent_mb_per_second, 941.5);
  EXPECT_DOUBLE_EQ(report->microseconds, 20);
  EXPECT_THAT(ReadReport("h1", "disk=70 /tmp\n").status().message(), HasSubstr("h1: its checks"));
}

TEST(Check, TellsApartWhyALinkCouldNotBeMeasured) {
  const auto found = [](const std::string& line) {
    const auto report = ReadReport("h2", line + "\nend=yes\n");
    EXPECT_TRUE(report.ok()) << report.status();
    return Judge({FitNode("h1"), *report}).back();
  };
  const Finding closed = found("unmeasured=1 rank 1 did not come");
  EXPECT_EQ(closed.outcome, Finding::Outcome::kFailed);
  EXPECT_THAT(closed.detail, HasSubstr("could not be measured: rank 1 did not come"));
  EXPECT_THAT(closed.remedy, HasSubstr("6830"));
  const Finding alien = found("unmeasured=126 cannot execute");
  EXPECT_EQ(alien.outcome, Finding::Outcome::kWarning);
  EXPECT_THAT(alien.remedy, HasSubstr("C library"));
  const Finding lacking = found("unmeasured= tutti-link is not beside tutti");
  EXPECT_THAT(lacking.detail, HasSubstr("could not be measured: tutti-link is not"));
  EXPECT_THAT(lacking.remedy, HasSubstr("built with its runtime"));
  EXPECT_THAT(found("bandwidth=nothing").detail, HasSubstr("said no number"));
}

TEST(Check, TheProgramTravelsInTheScriptOfSeveralNodes) {
  const std::vector<HostFacts> two = {{.host = "h1", .name = "h1", .address = "10.0.0.1"},
                                      {.host = "h2", .name = "h2", .address = "10.0.0.2"}};
  const std::string script = CheckScript(two, two[1], std::string(3000, 'x'), "5ecret");
  EXPECT_THAT(script, HasSubstr("index=1 secret=5ecret addresses='10.0.0.1 10.0.0.2'"));
  EXPECT_THAT(script, HasSubstr("eHh4eHh4"));
  EXPECT_THAT(CheckScript({two[0]}, two[0], std::string("x"), "s"), Not(HasSubstr("PROGRAM")));
  EXPECT_THAT(CheckScript(two, two[0], absl::NotFoundError("it's away"), "s"),
              HasSubstr("echo 'unmeasured= its away'"));
  const HostFacts controller = {.host = "c", .name = "c", .address = "10.0.0.3"};
  EXPECT_THAT(CheckScript(two, controller, std::string("x"), "s"),
              AllOf(HasSubstr("others='h1=10.0.0.1 h2=10.0.0.2'"), Not(HasSubstr("PROGRAM"))));
}

// Reached is h1 alone.
class OneIsThere final : public Remote {
 public:
  absl::StatusOr<std::string> Run(const std::string& host, absl::string_view script,
                                  base::Deadline) override {
    if (host != "h1") return absl::UnavailableError(host + ": No route to host");
    if (absl::StartsWith(script, "date")) return "1700000000.5\n";
    if (absl::StartsWith(script, "controller=")) return "disk=5000 /tmp\nend=yes\n";
    return "name=h1\naddress=10.0.0.1\ncpus=1\nmemory_mib=900\nend=yes\n";
  }
};

TEST(Check, LooksAtTheOthersWhereOneCannotBeReached) {
  OneIsThere remote;
  Description description;
  description.nodes = {"h1", "h2"};
  for (const char* controller : {"h1", "h2"}) {
    description.controller = controller;
    std::map<std::string, Finding> failed;
    for (const Finding& finding : CheckHosts(remote, description, std::string("x"))) {
      if (finding.outcome != Finding::Outcome::kFailed) continue;
      failed[absl::StrCat(finding.host, " ", finding.name)] = finding;
    }
    EXPECT_THAT(failed["h2 reach"].detail, HasSubstr("No route"));
    const bool leads = description.controller == "h2";
    EXPECT_THAT(failed["h2 reach"].remedy, HasSubstr(leads ? "delete --force" : "remove-node"));
    // Without its controller, h1's clock is compared with this machine's, which is years ahead.
    EXPECT_EQ(failed.contains("h1 clock"), leads);
    EXPECT_EQ(failed.size(), leads ? 2 : 1);
  }
}

TEST(Check, NamesAllThatAreGoneInOneRemedy) {
  OneIsThere remote;
  Description description;
  description.controller = "h1";
  description.nodes = {"h1", "h2", "h3"};
  int gone = 0;
  for (const Finding& finding : CheckHosts(remote, description, std::string("x"))) {
    if (finding.name != "reach") continue;
    EXPECT_THAT(finding.remedy, HasSubstr("`tutti cluster remove-node --force h2 h3`"));
    ++gone;
  }
  EXPECT_EQ(gone, 2);
}

}  // namespace
}  // namespace tutti::cluster
