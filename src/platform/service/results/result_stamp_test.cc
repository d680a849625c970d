#include "platform/service/results/result_stamp.h"

#include <gtest/gtest.h>

#include "base/file.h"

namespace tutti::service {
namespace {

TEST(ResultStamp, TellsWhatHasChangedAndNotWhatArrives) {
  const base::TemporaryDirectory job;
  const std::filesystem::path outputs = job.path() / "outputs";
  EXPECT_FALSE(ResultsAreAsStamped(job.path()));
  ASSERT_TRUE(base::MakeDirectories(outputs / "deep").ok());
  ASSERT_TRUE(base::ReplaceFile(outputs / "deep/weights", "whole").ok());
  ASSERT_TRUE(StampResults(job.path()).ok());
  EXPECT_TRUE(ResultsAreAsStamped(job.path()));
  const std::filesystem::path half = outputs / ".incoming-0123456789abcdef-0123456789abcdef";
  ASSERT_TRUE(base::MakeDirectories(half).ok());
  ASSERT_TRUE(base::ReplaceFile(half / "file", "half").ok());
  EXPECT_TRUE(ResultsAreAsStamped(job.path()));
  ASSERT_TRUE(base::ReplaceFile(outputs / "deep/more", "new").ok());
  EXPECT_FALSE(ResultsAreAsStamped(job.path()));
}

}  // namespace
}  // namespace tutti::service
