#include "runtime/device/precision/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::device {
namespace {

using testing::AllOf;
using testing::HasSubstr;

PrecisionFacts Of(Bf16 bf16, std::optional<double> slowdown = std::nullopt) {
  return {"processor", "AMD EPYC 7B13, AVX2", bf16, slowdown};
}

TEST(Choose, TakesBf16WhereItIsNativeAndFp32WhereItIsEmulatedWhateverWasMeasured) {
  EXPECT_TRUE(Choose(Of(Bf16::kNative)).bf16);
  EXPECT_TRUE(Choose(Of(Bf16::kNative, 3.0)).bf16) << "a moment of another's work misleads";
  EXPECT_FALSE(Choose(Of(Bf16::kEmulated)).bf16);
  EXPECT_FALSE(Choose(Of(Bf16::kEmulated, 0.5)).bf16);
  EXPECT_EQ(Choose(Of(Bf16::kEmulated)).why, "emulates bf16 (AMD EPYC 7B13, AVX2)");
}

TEST(Choose, TakesWhatWasMeasuredToBeFasterWhereInstructionsLeaveDoubt) {
  EXPECT_TRUE(Choose(Of(Bf16::kInDoubt, 0.61)).bf16);
  EXPECT_FALSE(Choose(Of(Bf16::kInDoubt, 1.0)).bf16);
  EXPECT_FALSE(Choose(Of(Bf16::kInDoubt, 2.4)).bf16);
  EXPECT_FALSE(Choose(Of(Bf16::kInDoubt)).bf16) << "fp32 runs everywhere";
  EXPECT_EQ(Choose(Of(Bf16::kInDoubt, 0.614)).why,
            "takes 0.61 times fp32's time for a layer in bf16 (AMD EPYC 7B13, AVX2)");
}

TEST(Choose, GpusHaveBf16FromComputeCapability8On) {
  EXPECT_EQ(Bf16OfGpu(7), Bf16::kEmulated);
  EXPECT_EQ(Bf16OfGpu(8), Bf16::kNative);
  EXPECT_EQ(Bf16OfGpu(12), Bf16::kNative);
}

TEST(WarningOf, SaysHowManyTimesSlower) {
  EXPECT_THAT(WarningOf(Of(Bf16::kEmulated, 9.34), "this processor", Bf16Reason::kAskedFor),
              AllOf(HasSubstr("this processor emulates bf16 (AMD EPYC 7B13, AVX2)"),
                    HasSubstr("9.3 times fp32's time"), HasSubstr("--precision auto")));
  EXPECT_THAT(
      WarningOf(Of(Bf16::kEmulated), "the processor of rank 3", Bf16Reason::kAskedFor),
      AllOf(HasSubstr("the processor of rank 3 emulates"), HasSubstr("could not be timed")));
}

TEST(WarningOf, TellsWhoResumesWhatGoesOnFaster) {
  EXPECT_EQ(WarningOf(Of(Bf16::kEmulated, 9.34), "this processor", Bf16Reason::kKept),
            "the run that is resumed computes in bf16, and this processor emulates bf16 (AMD EPYC "
            "7B13, AVX2): a layer takes 9.3 times fp32's time; --precision fp32 goes on faster");
}

TEST(WarningOf, OfAnotherRankSaysWhereItsTimeStands) {
  EXPECT_EQ(WarningOfAnother("emulates bf16 (AMD EPYC 7B13, AVX2)", "the processor of rank 3",
                             Bf16Reason::kAskedFor),
            "bf16 was asked for, and the processor of rank 3 emulates bf16 (AMD EPYC 7B13, AVX2), "
            "and its log says how many times fp32's time a layer takes; --precision auto takes "
            "what is fastest");
}

TEST(WarningOf, SaysOnceWhatWasTimed) {
  const std::string text =
      WarningOf(Of(Bf16::kInDoubt, 1.5), "this processor", Bf16Reason::kAskedFor);
  EXPECT_THAT(text, HasSubstr("takes 1.50 times fp32's time"));
  EXPECT_THAT(text, testing::Not(HasSubstr("a layer takes 1.5 times")));
}

}  // namespace
}  // namespace tutti::device
