#include "runtime/device/precision/detect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/machine/cpuinfo_for_tests.h"
#include "base/process/build_id.h"
#include "base/process/child_process.h"
#include "runtime/device/precision/processor.h"

namespace tutti::device {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Numbers are kept in a folder of the test's own.
class DetectPrecisionTest : public testing::Test {
 protected:
  DetectPrecisionTest() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~DetectPrecisionTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  const base::TemporaryDirectory folder_;
};

// The kernel's word for it, not that of the functions which FactsOf asks.
TEST_F(DetectPrecisionTest, AProcessorHasBf16WhereTheKernelSaysSo) {
  const auto kernel = base::InstructionsByCpuinfo();
  if (!kernel || std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr) {
    GTEST_SKIP() << "the kernel does not tell what this process may use";
  }
  const PrecisionFacts facts = FactsOf(torch::kCPU);
  const bool native = kernel->avx512_bf16 || kernel->amx;
  EXPECT_EQ(facts.bf16, native ? Bf16::kNative : Bf16::kEmulated);
  EXPECT_EQ(facts.slowdown, std::nullopt) << "nothing is in doubt";
  EXPECT_EQ(facts.kind, "processor");
  EXPECT_THAT(facts.name, StartsWith(base::CpuinfoValue("model name") + ", "));
  const bool avx512 = kernel->set == base::InstructionSet::kAvx512;
  if (kernel->set != base::InstructionSet::kPlain) {
    EXPECT_THAT(facts.name, HasSubstr(avx512 ? ", AVX-512" : ", AVX2"));
  }
}

TEST_F(DetectPrecisionTest, ALayerIsTimedOnceAndKept) {
  PrecisionFacts facts = FactsOf(torch::kCPU), again = facts;
  facts.slowdown = again.slowdown = std::nullopt;
  AddSlowdown(torch::kCPU, facts);
  ASSERT_TRUE(facts.slowdown.has_value());
  EXPECT_GT(*facts.slowdown, 0);
  AddSlowdown(torch::kCPU, again);
  EXPECT_EQ(again.slowdown, facts.slowdown) << "two measurements are never equal to the bit";
  PrecisionFacts other = facts;
  other.name += " of another kind";
  AddSlowdown(torch::kCPU, other);
  EXPECT_NE(other.slowdown, facts.slowdown);
}

// Another build may have other kernels.
TEST_F(DetectPrecisionTest, ALayersTimeIsKeptForThisBuildOfTheProgram) {
  PrecisionFacts facts;
  AddSlowdown(torch::kCPU, facts);
  const std::filesystem::directory_iterator kept(CacheFolder(base::CurrentEnvironment()));
  const auto text = base::ReadFile(kept->path());
  ASSERT_TRUE(text.ok()) << text.status();
  ASSERT_NE(base::BuildIdOfThisProgram(), "");
  EXPECT_THAT(*text, HasSubstr("; program " + base::BuildIdOfThisProgram()));
}

TEST_F(DetectPrecisionTest, AProcessAloneGetsWhatItNamesAndElseTheFastest) {
  const PrecisionChoice choice = Choose(FactsOf(torch::kCPU));
  const PrecisionTaken taken = DetectPrecision("auto", torch::kCPU);
  EXPECT_EQ(taken.precision, choice.bf16 ? "bf16" : "fp32");
  EXPECT_EQ(taken.why, "precision " + taken.precision + " (auto): this processor " + choice.why);
  for (const char* name : {"fp32", "bf16"}) {
    EXPECT_EQ(DetectPrecision(name, torch::kCPU).precision, name);
    EXPECT_EQ(DetectPrecision(name, torch::kCPU).why, "");
  }
}

TEST_F(DetectPrecisionTest, ALayerInEmulatedBf16IsSlower) {
  if (Bf16OfProcessor(InstructionsHere()) != Bf16::kEmulated) {
    GTEST_SKIP() << "this processor has instructions for bf16";
  }
  EXPECT_GT(TimeOneLayer(torch::kCPU), 1);
}

}  // namespace
}  // namespace tutti::device
