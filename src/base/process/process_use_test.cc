#include "base/process/process_use.h"

#include <gtest/gtest.h>

#include "absl/time/clock.h"

namespace tutti::base {
namespace {

TEST(ProcessUse, IsOfThisProcess) {
  const ProcessUse use = ReadProcessUse();
  EXPECT_GT(use.resident_bytes, 1 << 20);
  EXPECT_GE(use.open_files, 3);
  EXPECT_GE(use.most_files, use.open_files);
  EXPECT_GE(use.threads, 1);
  EXPECT_LE(use.started, absl::Now() + absl::Seconds(1));
  EXPECT_GT(use.started, absl::Now() - absl::Hours(24));
}

TEST(ProcessUse, BeganOnceAtATimeThatStays) {
  const absl::Time began = ReadProcessUse().started;
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ReadProcessUse().started, began);
}

}  // namespace
}  // namespace tutti::base
