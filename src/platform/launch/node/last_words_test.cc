#include "platform/launch/node/last_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "base/file.h"

namespace tutti::launch {
namespace {

class LastWords : public ::testing::Test {
 protected:
  const base::TemporaryDirectory folder_;
  const std::filesystem::path note_ = folder_.path() / "died";
};

TEST_F(LastWords, TheFirstStayAndOthersThanAReasonAreNone) {
  EXPECT_EQ(ReadLastWords(note_), "");
  LeaveLastWords(note_, "the disk is full");
  LeaveLastWords(note_, "so this failed too");
  EXPECT_EQ(ReadLastWords(note_), "the disk is full");
  ASSERT_TRUE(base::WriteFileAtomic(note_, "{\"reason\": 7}").ok());
  EXPECT_EQ(ReadLastWords(note_), "");
}

TEST_F(LastWords, TellOfTheExceptionThatEndsAnyThread) {
  EXPECT_DEATH(
      {
        LeaveLastWordsOnTerminate(note_);
        std::thread([] { throw std::runtime_error("no such thing"); }).join();
      },
      "");
  EXPECT_EQ(ReadLastWords(note_), "it could not go on: no such thing");
}

}  // namespace
}  // namespace tutti::launch
