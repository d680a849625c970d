#include "runtime/device/precision/detect.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/file.h"
#include "runtime/device/precision/processor.h"

namespace tutti::device {
namespace {

// Numbers are kept in a folder of the test's own.
class DetectPrecisionTest : public testing::Test {
 protected:
  DetectPrecisionTest() { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }
  ~DetectPrecisionTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  const base::TemporaryDirectory folder_;
};

TEST_F(DetectPrecisionTest, AProcessorIsNamedWithItsInstructions) {
  const PrecisionFacts facts = FactsOf(torch::kCPU);
  EXPECT_EQ(facts.kind, "processor");
  EXPECT_EQ(facts.name, NameOfThisProcessor());
  EXPECT_EQ(facts.bf16, Bf16OfProcessor(InstructionsHere()));
  EXPECT_EQ(facts.slowdown.has_value(), facts.bf16 == Bf16::kInDoubt);
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
