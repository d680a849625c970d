#include "platform/launch/node/exit_reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "base/file.h"

namespace tutti::launch {
namespace {

class ExitReason : public ::testing::Test {
 protected:
  const base::TemporaryDirectory folder_;
  const std::filesystem::path note_ = folder_.path() / "died";
};

TEST_F(ExitReason, TheFirstStayAndOthersThanAReasonAreNone) {
  EXPECT_EQ(ReadExitReason(note_), "");
  RecordExitReason(note_, "the disk is full");
  RecordExitReason(note_, "so this failed too");
  EXPECT_EQ(ReadExitReason(note_), "the disk is full");
  ASSERT_TRUE(base::WriteFileAtomic(note_, "{\"reason\": 7}").ok());
  EXPECT_EQ(ReadExitReason(note_), "");
}

TEST_F(ExitReason, TellOfTheExceptionThatEndsAnyThread) {
  EXPECT_DEATH(
      {
        RecordExitReasonOnTerminate(note_);
        std::thread([] { throw std::runtime_error("no such thing"); }).join();
      },
      "");
  EXPECT_EQ(ReadExitReason(note_), "it could not go on: no such thing");
}

}  // namespace
}  // namespace tutti::launch
