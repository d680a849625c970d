#include "platform/client/doctor/report_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Outcome = Check::Outcome;

constexpr char kReport[] =
    R"json({"processor":"AMD EPYC 7B13","instructions":"AVX2","threads":2,"memory_speed":21300000000.0,)json"
    R"json("precision":"fp32","why":"precision fp32 (auto): this processor emulates bf16 (x, AVX2)",)json"
    R"json("device":"cpu","images_per_second":430.2,"gpu":null,"no_gpu":"there is no GPU: no driver"})json";

class MachineReportTest : public testing::Test {
 protected:
  std::vector<client::Check> CheckWith(const std::string& script) {
    const auto program = folder_.path() / "tutti-train";
    EXPECT_TRUE(base::WriteFileAtomic(program, "#!/bin/sh\n" + script + "\n", 0755).ok());
    return Checked();
  }
  std::vector<client::Check> Checked() {
    DoctorSubject subject;
    subject.program_folder = folder_.path();
    return CheckMachine(subject);
  }
  base::TemporaryDirectory folder_;
};

TEST_F(MachineReportTest, SaysWhatTheMachineIsGoodFor) {
  const auto checks = CheckWith(absl::StrCat("cat <<'END'\n", kReport, "\nEND"));
  ASSERT_EQ(checks.size(), 5u);
  for (const auto& check : checks) EXPECT_EQ(check.outcome, Outcome::kOk) << check.detail;
  EXPECT_EQ(checks[0].detail, "AMD EPYC 7B13, AVX2");
  EXPECT_EQ(checks[1].detail, "21.3 GB/s (triad, all cores)");
  EXPECT_EQ(checks[2].detail, "fp32 (auto): this processor emulates bf16 (x, AVX2)");
  EXPECT_EQ(checks[3].detail, "none: there is no GPU: no driver");
  EXPECT_THAT(checks[4].detail, AllOf(HasSubstr("430 images/s"), HasSubstr("about 3:05")));
}

TEST_F(MachineReportTest, NamesAGpu) {
  std::string report = kReport;
  report.replace(
      report.find("\"gpu\":null"), 10,
      R"("gpu":{"name":"NVIDIA H200","compute_capability":"9.0","memory":150000000000.0})");
  EXPECT_EQ((*ChecksOfReport(report, 0))[3].detail, "NVIDIA H200, compute capability 9.0, 150 GB");
}

TEST_F(MachineReportTest, SaysThatOtherProgramsDisturbed) {
  EXPECT_THAT((*ChecksOfReport(kReport, 2))[4].detail, Not(HasSubstr("other programs")));
  EXPECT_THAT((*ChecksOfReport(kReport, 27.4))[4].detail,
              HasSubstr("; other programs load the machine (27 runnable, 2 cores)"));
}

TEST_F(MachineReportTest, SaysThatItCannotBeMeasuredWithoutTuttiTrain) {
  const auto checks = Checked();
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].outcome, Outcome::kWarning);
  EXPECT_THAT(checks[0].detail, HasSubstr("tutti-train is not in"));
  EXPECT_EQ(checks[0].remedy, "tools/build tutti-train");
}

TEST_F(MachineReportTest, AProgramThatFailsOrSaysSomethingElseIsAWarning) {
  for (const auto& [script, words] : std::vector<std::pair<std::string, std::string>>{
           {"echo first >&2; echo no libtorch >&2; exit 127", "exit code 127: no libtorch"},
           {"echo '{}'", "describe-machine"},
           {"echo unknown flag", "describe-machine"},
           {"true", "describe-machine"}}) {
    const auto checks = CheckWith(script);
    ASSERT_EQ(checks.size(), 1u) << script;
    EXPECT_EQ(checks[0].outcome, Outcome::kWarning);
    EXPECT_THAT(checks[0].detail, HasSubstr(words));
  }
}

}  // namespace
}  // namespace tutti::client
