#include "base/machine/processor_name.h"

#include <gmock/gmock.h>

#include "absl/strings/ascii.h"
#include "base/file.h"

namespace tutti::base {
namespace {

// As the kernel has it, but for spaces.
TEST(ProcessorName, IsTheOneThatTheKernelTells) {
  const std::string told = ReadFile("/proc/cpuinfo").value_or("");
  const std::string name = ProcessorName();
#if defined(__x86_64__)
  ASSERT_FALSE(name.empty());
  std::string plain = told;
  absl::RemoveExtraAsciiWhitespace(&plain);
  EXPECT_THAT(plain, ::testing::HasSubstr(name));
#else
  EXPECT_EQ(name, "");
#endif
}

}  // namespace
}  // namespace tutti::base
