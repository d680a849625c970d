#include "platform/client/doctor/report_checks.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::client {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Outcome = Check::Outcome;

constexpr char kReport[] =
    R"json({"processor":"AMD EPYC 7B13","instructions":"AVX2","threads":2,"memory_speed":21300000000.0,)json"
    R"json("precision":"fp32","why":"precision fp32 (auto): this processor emulates bf16 (x, AVX2)",)json"
    R"json("device":"cpu","images_per_second":430.2,"images_per_second_alone":460.1,"gpu":null,"no_gpu":"there is no GPU: no driver"})json";

std::string Changed(const std::string& from, const std::string& to) {
  std::string report = kReport;
  return report.replace(report.find(from), from.size(), to);
}

int64_t ImagesIn(const std::filesystem::path& shard) {
  archive* const reader = archive_read_new();
  archive_read_support_filter_zstd(reader);
  archive_read_support_format_tar(reader);
  EXPECT_EQ(archive_read_open_filename(reader, shard.c_str(), 1 << 16), ARCHIVE_OK);
  int64_t images = 0;
  archive_entry* entry = nullptr;
  while (archive_read_next_header(reader, &entry) == ARCHIVE_OK) {
    images += std::string(archive_entry_pathname(entry)).ends_with(".jpg") ? 1 : 0;
  }
  archive_read_free(reader);
  return images;
}

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
  EXPECT_THAT(checks[4].detail, HasSubstr(" images/s of ResNet-20 at batch 64"));
}

TEST_F(MachineReportTest, NamesAGpu) {
  const std::string report =
      Changed(R"("gpu":null)",
              R"("gpu":{"name":"NVIDIA H200","compute_capability":"9.0","memory":150000000000.0})");
  EXPECT_EQ((*ChecksOfReport(report, 0))[3].detail, "NVIDIA H200, compute capability 9.0, 150 GB");
}

TEST_F(MachineReportTest, GivesTheSpeedByProcessorTimeWhereTheLoadExceedsTheCores) {
  EXPECT_THAT((*ChecksOfReport(kReport, 2))[4].detail,
              AllOf(StartsWith("430 images/s"), HasSubstr("about 1:32"), Not(HasSubstr("busy"))));
  EXPECT_THAT(
      (*ChecksOfReport(kReport, 27.4))[4].detail,
      AllOf(StartsWith("460 images/s"), HasSubstr("about 1:26"),
            HasSubstr("; the machine is busy (27 runnable, 2 cores): these are by processor "
                      "time, as when it is idle, and now it does 430 images/s")));
}

// The load of the last minute says nothing of a program that has just begun.
TEST_F(MachineReportTest, GivesTheSpeedByProcessorTimeWhereStepsWaitedForProcessors) {
  EXPECT_THAT((*ChecksOfReport(Changed("430.2", "39.4"), 1))[4].detail,
              AllOf(StartsWith("460 images/s"), HasSubstr("about 1:26"),
                    HasSubstr("busy (1 runnable, 2 cores)"), HasSubstr("now it does 39 images/s")));
  EXPECT_THAT((*ChecksOfReport(Changed("430.2", "350.4"), 1))[4].detail,
              AllOf(StartsWith("350 images/s"), Not(HasSubstr("busy"))));
}

// The measurement begins with waits that spin, unless this machine is busy.
TEST_F(MachineReportTest, MeasuresAgainWithWaitsAsleepWhereStepsWaitedForProcessors) {
  const auto checks = CheckWith(absl::StrCat(
      "if [ \"$OMP_WAIT_POLICY\" = passive ]; then\ncat <<'END'\n", Changed("430.2", "39.4"),
      "\nEND\nelse\ncat <<'END'\n", Changed("430.2", "7.6"), "\nEND\nfi"));
  ASSERT_EQ(checks.size(), 5u);
  EXPECT_THAT(checks[4].detail,
              AllOf(StartsWith("460 images/s"), HasSubstr("now it does 39 images/s")));
}

TEST_F(MachineReportTest, HasNoOtherSpeedOfAGpu) {
  const auto checks = ChecksOfReport(Changed(R"("device":"cpu")", R"("device":"cuda")"), 27.4);
  EXPECT_THAT((*checks)[4].detail, AllOf(HasSubstr("on the GPU"), EndsWith("2 cores)")));
}

// The last images of each of the sample's epochs do not fill a batch and are not trained on.
TEST(ImagesOfTheExample, AreThoseOfItsRecipeAndSample) {
  const std::filesystem::path example = TUTTI_EXAMPLES "/cifar10";
  const YAML::Node recipe = YAML::LoadFile(example / "code/recipe.yml");
  const auto batch = recipe["batch"].as<int64_t>();
  int64_t images = 0;
  for (const auto& shard : std::filesystem::directory_iterator(example / "data")) {
    if (shard.path().filename().native().starts_with("train-")) images += ImagesIn(shard.path());
  }
  EXPECT_EQ(recipe["epochs"].as<int64_t>() * (images / batch) * batch, kImagesOfTheExample);
}

TEST_F(MachineReportTest, SaysThatItCannotBeMeasuredWithoutTuttiTrain) {
  const auto checks = Checked();
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].outcome, Outcome::kWarning);
  EXPECT_THAT(checks[0].detail, HasSubstr("tutti-train is not in"));
  EXPECT_EQ(checks[0].remedy, "tools/setup build && tools/build tutti-train");
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
