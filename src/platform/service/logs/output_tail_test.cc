#include "platform/service/logs/output_tail.h"

#include <gtest/gtest.h>

namespace tutti::service {
namespace {

TEST(OutputTailTest, KeepsAllWhileThatIsLittle) {
  OutputTail tail(10);
  tail.Take(10, "one\n");
  tail.Take(12, "e\ntwo\n");  // the first two bytes have come already
  EXPECT_EQ(tail.Last(), "one\ntwo\n");
  EXPECT_EQ(tail.LeftOut(), 0u);
  EXPECT_EQ(tail.arrived(), 18u);
}

TEST(OutputTailTest, KeepsTheLastWholeLinesOfMuch) {
  OutputTail tail(0);
  uint64_t offset = 0;
  for (int i = 0; i < 100'000; ++i) {
    tail.Take(offset, "0123456\n");
    offset += 8;
  }
  EXPECT_EQ(tail.Last().size(), OutputTail::kKept - 8);
  EXPECT_EQ(tail.Last().substr(0, 8), "0123456\n");
  EXPECT_EQ(tail.LeftOut() + tail.Last().size(), 800'000u);
}

TEST(OutputTailTest, CountsWhatItNeverSaw) {
  OutputTail tail(100);
  tail.Take(100, "before\n");
  tail.Take(500, "x");
  EXPECT_EQ(tail.Last(), "x");
  EXPECT_EQ(tail.LeftOut(), 400u);
}

}  // namespace
}  // namespace tutti::service
