#include "platform/client/jobs/batch_ai_log.h"

#include <gtest/gtest.h>

namespace tutti::client {
namespace {

TEST(BatchAiLogTest, FindsRankAndStreamByTheNameThatBatchAiGave) {
  const struct {
    const char* name;
    int rank;
    bool is_stderr;
  } kCases[] = {{"stdout.txt", -1, false},     {"stderr.txt", -1, true},
                {"stdout-1.txt", 1, false},    {"stderr-12.txt", 12, true},
                {"stdout-wk-0.txt", 0, false}, {"stderr-wk-3.txt", 3, true}};
  for (const auto& one : kCases) {
    const auto log = LogOfBatchAi(one.name);
    ASSERT_TRUE(log.has_value()) << one.name;
    EXPECT_EQ(log->rank, one.rank) << one.name;
    EXPECT_EQ(log->is_stderr, one.is_stderr) << one.name;
  }
}

TEST(BatchAiLogTest, FindsNothingByAnotherName) {
  for (const char* name : {"", "stdout", ".txt", "stdout-.txt", "stdout-x.txt", "stdout--1.txt",
                           "stdout-+1.txt", "stdout-ps-0.txt", "execution.log", "stdoutx.txt"}) {
    EXPECT_FALSE(LogOfBatchAi(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace tutti::client
