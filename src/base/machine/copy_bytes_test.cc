#include "base/machine/copy_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tutti::base {
namespace {

TEST(CopyBytes, CopiesAllBytesAndNoOther) {
  constexpr size_t kPage = 4096;
  std::vector<char> source(5 * kPage), target(5 * kPage);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 37 % 251 + 1);
  for (const size_t bytes : {0, 1, 63, 64, 1023, 1024, 1025, 4096, 10001}) {
    for (size_t offset = 0; offset < 70; ++offset) {
      std::fill(target.begin(), target.end(), 0);
      CopyBytes(target.data() + offset, source.data() + 3, bytes);
      const std::string before(offset, '\0');
      const std::string copied(source.data() + 3, bytes);
      const std::string after(target.size() - offset - bytes, '\0');
      ASSERT_EQ(std::string(target.begin(), target.end()), before + copied + after)
          << bytes << " bytes at " << offset;
    }
  }
}

TEST(CopyBytes, SeesWhereTheCopyInstructionMayBeSlow) {
  alignas(4096) static char memory[3 * 4096];
  EXPECT_FALSE(CopyInstructionMayBeSlow(memory, memory));
  EXPECT_TRUE(CopyInstructionMayBeSlow(memory + 1, memory));
  EXPECT_TRUE(CopyInstructionMayBeSlow(memory + 31, memory));
  EXPECT_FALSE(CopyInstructionMayBeSlow(memory + 32, memory));
  EXPECT_FALSE(CopyInstructionMayBeSlow(memory, memory + 16))
      << "the source behind the destination";
  EXPECT_TRUE(CopyInstructionMayBeSlow(memory + 2 * 4096 + 16, memory)) << "in another page";
  EXPECT_TRUE(CopyInstructionMayBeSlow(memory, memory + 4096 - 16)) << "in the page before";
}

}  // namespace
}  // namespace tutti::base
