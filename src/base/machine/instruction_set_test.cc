#include "base/machine/instruction_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "base/machine/cpuinfo_for_tests.h"

namespace tutti::base {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const Instructions kNewest = {InstructionSet::kAvx512, true, true, ""};

TEST(InstructionSetTest, WithoutVariablesIsTheProcessors) {
  const auto held = Held(kNewest, "", "");
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held->set, InstructionSet::kAvx512);
  EXPECT_TRUE(held->avx512_bf16);
  EXPECT_TRUE(held->amx);
  EXPECT_EQ(held->held_by, "");
}

TEST(InstructionSetTest, IsHeldByTuttisVariableAndByLibtorchs) {
  for (const auto& [own, libtorch] : {std::pair("avx2", ""), std::pair("", "avx2"),
                                      std::pair("avx512", "avx2"), std::pair("avx2", "avx512")}) {
    const auto held = Held(kNewest, own, libtorch);
    ASSERT_TRUE(held.ok());
    EXPECT_EQ(held->set, InstructionSet::kAvx2) << own << " " << libtorch;
    EXPECT_FALSE(held->avx512_bf16);
    EXPECT_FALSE(held->amx);
    EXPECT_THAT(held->held_by, HasSubstr("CPU_CAPABILITY=avx2"));
  }
  EXPECT_EQ(Held(kNewest, "default", "avx2")->set, InstructionSet::kPlain);
  EXPECT_EQ(Held(kNewest, "avx2", "default")->set, InstructionSet::kPlain);
}

TEST(InstructionSetTest, Avx512LeavesOutWhatCameLater) {
  const auto own = Held(kNewest, "avx512", "");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->set, InstructionSet::kAvx512);
  EXPECT_FALSE(own->avx512_bf16);
  EXPECT_FALSE(own->amx);
  // libtorch's value of that name holds back nothing of it.
  EXPECT_TRUE(Held(kNewest, "", "avx512")->avx512_bf16);
}

TEST(InstructionSetTest, NoVariableAddsWhatTheProcessorLacks) {
  const Instructions old = {InstructionSet::kAvx2, false, false, ""};
  const auto held = Held(old, "avx512", "");
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held->set, InstructionSet::kAvx2);
  EXPECT_EQ(held->held_by, "");
}

TEST(InstructionSetTest, NamesTheValuesWhereOneDoesNotExist) {
  const auto held = Held(kNewest, "AVX2", "");
  EXPECT_EQ(held.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(held.status().message(),
            "TUTTI_CPU_CAPABILITY must be default, avx2 or avx512, and not \"AVX2\"");
}

TEST(InstructionSetTest, OfThisProcessorIsWhatTheKernelSaysOfIt) {
  const auto kernel = InstructionsByCpuinfo();
  if (!kernel) GTEST_SKIP() << "the kernel does not tell what this process may use";
  EXPECT_EQ(UsableInstructionSet(), kernel->set);
  EXPECT_EQ(MayUseAvx512Bf16(), kernel->avx512_bf16);
  if (kernel->amx) {  // one of before 5.16 does not know it
    EXPECT_TRUE(MayUseAmx());
  }
  const char* const names[] = {"no vector instructions", "AVX2", "AVX-512"};
  EXPECT_THAT(DescribeInstructionSet(), StartsWith(names[static_cast<int>(kernel->set)]));
  EXPECT_EQ(absl::StrContains(DescribeInstructionSet(), "BF16"), kernel->avx512_bf16);
}

TEST(InstructionSetTest, OfThisProcessorIsConsistent) {
  if (MayUseAvx512Bf16() || MayUseAmx()) {
    EXPECT_EQ(UsableInstructionSet(), InstructionSet::kAvx512);
  }
}

}  // namespace
}  // namespace tutti::base
