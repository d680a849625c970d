#include "runtime/device/precision/processor.h"

#include <gtest/gtest.h>

namespace tutti::device {
namespace {

using base::InstructionSet;

TEST(ParseProcessor, NamesTheFirst) {
  const Processor x86 = ParseProcessor(
      "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7B13\nflags\t\t: fpu "
      "avx2\n\n"
      "processor\t: 1\nmodel name\t: another\nflags\t\t: fpu\n");
  EXPECT_EQ(x86.model, "AMD EPYC 7B13");
  EXPECT_EQ(x86.flags, "fpu avx2");
  const Processor arm = ParseProcessor(
      "processor\t: 0\nFeatures\t: fp asimd bf16\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n");
  EXPECT_EQ(arm.model, "ARM processor, implementer 0x41, part 0xd40");
  EXPECT_EQ(arm.flags, "fp asimd bf16");
  EXPECT_EQ(ParseProcessor("").model, "a processor without a name");
}

TEST(Bf16OfProcessor, IsNativeByAvx512Bf16AndAmx) {
  EXPECT_EQ(Bf16OfProcessor({.set = InstructionSet::kAvx512, .avx512_bf16 = true}), Bf16::kNative);
  EXPECT_EQ(Bf16OfProcessor({.set = InstructionSet::kAvx512, .amx = true}), Bf16::kNative);
  EXPECT_EQ(
      Bf16OfProcessor(
          {.set = InstructionSet::kAvx512, .avx512_bf16 = true, .onednn = "AVX512_CORE_BF16"}),
      Bf16::kNative);
}

TEST(Bf16OfProcessor, IsToBeTimedOnArmWithIt) {
  EXPECT_EQ(Bf16OfProcessor({.arm_bf16 = true}), Bf16::kInDoubt);
}

TEST(Bf16OfProcessor, IsEmulatedElsewhereAndWhereOneDnnIsHeldToLess) {
  EXPECT_EQ(Bf16OfProcessor({.set = InstructionSet::kAvx512}), Bf16::kEmulated);
  EXPECT_EQ(Bf16OfProcessor({.set = InstructionSet::kAvx2}), Bf16::kEmulated);
  EXPECT_EQ(Bf16OfProcessor({}), Bf16::kEmulated);
  for (const char* most : {"AVX2", "AVX2_VNNI_2", "AVX512_CORE", "AVX512_CORE_VNNI"}) {
    EXPECT_EQ(
        Bf16OfProcessor({.set = InstructionSet::kAvx512, .avx512_bf16 = true, .onednn = most}),
        Bf16::kEmulated)
        << most;
  }
}

TEST(ThisProcessor, HasAName) {
  EXPECT_FALSE(ThisProcessor().model.empty());
  EXPECT_EQ(NameOfThisProcessor().rfind(ThisProcessor().model, 0), 0u);
}

}  // namespace
}  // namespace tutti::device
