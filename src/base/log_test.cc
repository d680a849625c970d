#include "base/log.h"

#include <gmock/gmock.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <string>

namespace tutti::base {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

// Gives the program's logger back at its end.
class LogTest : public ::testing::Test {
 protected:
  ~LogTest() override { spdlog::set_default_logger(before_); }

  // Returns what is written to standard error at that level.
  static std::string Said(absl::string_view level) {
    ::testing::internal::CaptureStderr();
    StartLogging(level);
    spdlog::debug("a detail");
    spdlog::info("a fact");
    Warn("100% {} of it");
    spdlog::default_logger()->flush();
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(LogTest, ALineHasItsTimeInUtcAndItsLevel) {
  EXPECT_THAT(
      Said("warn"),
      MatchesRegex("[0-9]+-[0-9]+-[0-9]+T[0-9]+:[0-9]+:[0-9]+.[0-9]+Z W 100% \\{\\} of it\n"));
}

TEST_F(LogTest, TheLevelChoosesWhatIsWritten) {
  EXPECT_THAT(Said("debug"), HasSubstr(" D a detail\n"));
  EXPECT_THAT(Said("info"), Not(HasSubstr("a detail")));
  EXPECT_THAT(Said("info"), HasSubstr(" I a fact\n"));
  EXPECT_EQ(Said("err"), "");
}

}  // namespace
}  // namespace tutti::base
