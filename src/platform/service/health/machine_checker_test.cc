#include "platform/service/health/machine_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/file.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using Outcome = health::NodeCheck::Outcome;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class MachineCheckerTest : public ::testing::Test {
 protected:
  MachineCheckerTest() {
    Write("proc/meminfo", "MemTotal: 65536000 kB\nMemAvailable: 32768000 kB\n");
    options_ = {.home = folder_.path(),
                .root = folder_.path(),
                .nvidia_smi = (folder_.path() / "nvidia-smi").native(),
                .kernel_log = [this] { return kernel_log_; }};
    node_ = {.name = "n1", .directory = folder_.path().native(), .gpus = {"0", "1"}};
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(base::MakeDirectories((folder_.path() / name).parent_path()).ok());
    ASSERT_TRUE(base::ReplaceFile(folder_.path() / name, text).ok());
  }
  void WriteProgram(const std::string& name, const std::string& body) {
    Write(name, absl::StrCat("#!/bin/sh\n", body));
    fs::permissions(folder_.path() / name, fs::perms::owner_all);
  }
  void Gpus(const std::string& lines) {
    WriteProgram("nvidia-smi", absl::StrCat("cat <<'E'\n", lines, "E\n"));
  }
  // The check of that name; one that is not there has no name.
  static health::NodeCheck Find(const std::vector<health::NodeCheck>& checks,
                                const std::string& name) {
    for (const health::NodeCheck& check : checks) {
      if (check.name == name) return check;
    }
    return {};
  }
  health::NodeCheck Look(const std::string& name) {
    return Find(checker_->Check(node_, absl::ZeroDuration()), name);
  }

  const base::TemporaryDirectory folder_;
  std::string kernel_log_;
  MachineCheckerOptions options_;
  engine::Node node_;
  std::unique_ptr<NodeChecker> checker_ = nullptr;
  void Make() { checker_ = MakeMachineChecker(options_); }
};

TEST_F(MachineCheckerTest, LooksAtDiskHomeAndMemoryWhereTheSiteSaysNothing) {
  Make();
  const auto checks = checker_->Check(node_, absl::ZeroDuration());
  ASSERT_EQ(checks.size(), 3u);
  EXPECT_EQ(checks[0].name, "disk");
  EXPECT_EQ(checks[1].name, "home");
  EXPECT_EQ(checks[2].name, "memory");
  for (const health::NodeCheck& check : checks) {
    EXPECT_EQ(check.outcome, Outcome::kWell) << check.name << ": " << check.detail;
  }
  EXPECT_EQ(checker_->interval(), absl::Minutes(5));
  node_.directory += "/gone";
  EXPECT_TRUE(Look("disk").ill());
}

TEST_F(MachineCheckerTest, TheSitesProgramSaysWhyAndMustEndInTime) {
  WriteProgram("check", "echo; echo ' fan 3 stands '; echo more; exit 3\n");
  Write("site.yml", absl::StrCat("health_check: {command: ", folder_.path().native(),
                                 "/check, timeout: 1, interval: 7}\n"));
  Make();
  EXPECT_TRUE(Look("program").ill());
  EXPECT_EQ(Look("program").detail, "fan 3 stands");
  EXPECT_EQ(checker_->interval(), absl::Seconds(7));
  WriteProgram("check", "exit 0\n");
  EXPECT_EQ(Look("program").outcome, Outcome::kWell);
  WriteProgram("check", "exec sleep 60\n");
  EXPECT_TRUE(Look("program").ill());
  EXPECT_EQ(Look("program").detail, "it did not end within 1s");
  fs::remove(folder_.path() / "check");  // a slip of the pen does not take all nodes
  EXPECT_EQ(Look("program").outcome, Outcome::kUnknown);
  EXPECT_THAT(Look("program").detail, HasSubstr("not found"));
}

TEST_F(MachineCheckerTest, LinksAndASiteFileThatCannotBeRead) {
  Write("sys/class/net/ib0/operstate", "down\n");
  Write("site.yml", "health_check: {links: [ib0]}\n");
  Make();
  EXPECT_EQ(Look("link").detail, "link ib0 is down");
  Write("site.yml", "health_check: {link: [ib0]}\n");
  EXPECT_EQ(Look("site").outcome, Outcome::kUnknown);
  EXPECT_THAT(Look("site").detail, HasSubstr("unknown key \"link\""));
}

TEST_F(MachineCheckerTest, WhatIsOfTheMachineIsLookedAtOnceForAllOfItsNodes) {
  WriteProgram("check", absl::StrCat("echo run >>", folder_.path().native(), "/runs; exit 1\n"));
  Write("site.yml", absl::StrCat("health_check: ", folder_.path().native(), "/check\n"));
  Make();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Find(checker_->Check(node_, absl::Hours(1)), "program").ill());
  }
  EXPECT_EQ(*base::ReadFile(folder_.path() / "runs"), "run\n");
  Look("program");
  EXPECT_EQ(*base::ReadFile(folder_.path() / "runs"), "run\nrun\n");
}

TEST_F(MachineCheckerTest, AGpuIsMissedByTheNodeThatHadItUntilItsLossIsAccepted) {
  Gpus("0, GPU-aaaa, 00000000:3B:00.0, 0\n1, GPU-bbbb, 00000000:86:00.0, 0\n");
  Make();
  EXPECT_EQ(Look("gpu").outcome, Outcome::kWell) << Look("gpu").detail;
  Gpus("0, GPU-aaaa, 00000000:3B:00.0, 0\n");
  Make();  // the service may have been started anew
  EXPECT_EQ(Look("gpu").detail, "GPU 1 is gone");
  EXPECT_TRUE(Look("gpu").ill());
  node_.gpus = {"0"};
  EXPECT_EQ(Look("gpu").outcome, Outcome::kWell);
  node_.gpus = {"GPU-bb"};
  EXPECT_TRUE(Look("gpu").ill());
  checker_->Accept();
  EXPECT_EQ(Look("gpu").outcome, Outcome::kWell) << Look("gpu").detail;
  EXPECT_EQ(Look("gpu").outcome, Outcome::kWell) << Look("gpu").detail;
}

TEST_F(MachineCheckerTest, AnXidThatIsOldOrAcceptedDoesNotCount) {
  Gpus("0, GPU-aaaa, 00000000:3B:00.0, 0\n");
  const absl::Duration now = base::SteadyNow();
  const auto line = [](absl::Duration time) {
    return absl::StrCat("4,7,", absl::ToInt64Microseconds(time),
                        ",-;NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE\n");
  };
  kernel_log_ = line(now - absl::Hours(25));
  Make();
  EXPECT_EQ(Look("gpu").outcome, Outcome::kWell) << Look("gpu").detail;
  kernel_log_ += line(now - absl::Hours(23));
  EXPECT_TRUE(Look("gpu").ill());
  checker_->Accept();
  EXPECT_EQ(Look("gpu").outcome, Outcome::kWell) << Look("gpu").detail;
  kernel_log_ += line(now);
  EXPECT_TRUE(Look("gpu").ill()) << "it came after what was accepted";
}

TEST_F(MachineCheckerTest, AGlanceRunsNoProgramAndSeesWhatTheKernelSays) {
  WriteProgram("check", absl::StrCat("echo run >>", folder_.path().native(), "/runs\n"));
  Write("sys/class/net/ib0/operstate", "up\n");
  Write("site.yml", absl::StrCat("health_check: {links: [ib0], command: ", folder_.path().native(),
                                 "/check}\n"));
  Gpus("0, GPU-aaaa, 00000000:3B:00.0, 0\n");
  Make();
  for (const health::NodeCheck& check : checker_->Glance(node_)) {
    EXPECT_FALSE(check.ill()) << check.name << ": " << check.detail;
  }
  EXPECT_FALSE(Look("link").ill());
  WriteProgram("nvidia-smi", absl::StrCat("echo run >>", folder_.path().native(), "/runs\n"));
  kernel_log_ = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, fallen off the bus\n";
  Write("sys/class/net/ib0/operstate", "down\n");
  node_.directory += "/gone";
  const auto checks = checker_->Glance(node_);
  EXPECT_EQ(Find(checks, "gpu").detail, "GPU 0 had XID 79: it has left the bus");
  EXPECT_EQ(Find(checks, "link").detail, "link ib0 is down");
  EXPECT_TRUE(Find(checks, "disk").ill());
  EXPECT_EQ(*base::ReadFile(folder_.path() / "runs"), "run\n") << "that of the look";
  kernel_log_.clear();
  EXPECT_TRUE(Find(checker_->Glance(node_), "gpu").ill()) << "it is remembered for some seconds";
  EXPECT_EQ(checker_->glance_interval(), absl::Seconds(5));
}

TEST_F(MachineCheckerTest, ErrorsOfAGpuAndADriverThatFailsAreIll) {
  Gpus("0, GPU-aaaa, 00000000:3B:00.0, 0\n");
  kernel_log_ = "NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE\n";
  Make();
  EXPECT_THAT(Look("gpu").detail, StartsWith("GPU 0 had XID 48: "));
  WriteProgram("nvidia-smi", "echo 'Unable to determine the device handle'; exit 15\n");
  EXPECT_TRUE(Look("gpu").ill());
  EXPECT_EQ(Look("gpu").detail,
            "nvidia-smi ended with exit code 15: Unable to determine the device handle");
  fs::remove(folder_.path() / "nvidia-smi");
  EXPECT_EQ(Look("gpu").outcome, Outcome::kUnknown);
  node_.gpus.clear();
  EXPECT_EQ(Look("gpu").name, "");
}

}  // namespace
}  // namespace tutti::service
