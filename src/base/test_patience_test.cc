#include "base/test_patience.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace tutti::base {
namespace {

class TestPatienceTest : public testing::Test {
 protected:
  TestPatienceTest() {
    if (const char* given = std::getenv(kVariable)) before_ = given;
  }
  ~TestPatienceTest() override {
    before_ ? ::setenv(kVariable, before_->c_str(), 1) : ::unsetenv(kVariable);
  }
  static constexpr char kVariable[] = "TUTTI_TEST_PATIENCE";

 private:
  std::optional<std::string> before_;
};

TEST_F(TestPatienceTest, LimitsHoldAsManyTimesAsLong) {
  ::setenv(kVariable, "2.5", 1);
  EXPECT_EQ(Patient(absl::Seconds(4)), absl::Seconds(10));
}

TEST_F(TestPatienceTest, WhatATestWaitsOutIsBounded) {
  ::setenv(kVariable, "2.5", 1);
  EXPECT_EQ(PatientTimeout(absl::Seconds(2)), absl::Seconds(5));
  ::setenv(kVariable, "30", 1);
  EXPECT_EQ(PatientTimeout(absl::Seconds(2)), absl::Seconds(6));
}

TEST_F(TestPatienceTest, NothingHoldsLessLongThanWritten) {
  ::unsetenv(kVariable);
  EXPECT_EQ(Patient(absl::Seconds(4)), absl::Seconds(4));
  for (const char* text : {"", "0", "0.5", "-3", "much", "nan"}) {
    ::setenv(kVariable, text, 1);
    EXPECT_EQ(Patient(absl::Seconds(4)), absl::Seconds(4)) << text;
  }
}

TEST_F(TestPatienceTest, LooksUntilTheConditionHolds) {
  int looks = 0;
  EXPECT_TRUE(AwaitPatiently(absl::Seconds(20), [&] { return ++looks == 3; }));
  EXPECT_EQ(looks, 3);
}

TEST_F(TestPatienceTest, WhatDoesNotComeAboutFailsTheTestAtTheCallersLine) {
  ::unsetenv(kVariable);
  bool held = true;
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    held = AwaitPatiently(absl::Milliseconds(10), [] { return false; });
  }
  EXPECT_FALSE(held);
  ASSERT_EQ(failures.size(), 1);
  EXPECT_STREQ(failures.GetTestPartResult(0).file_name(), __FILE__);
  EXPECT_STREQ(failures.GetTestPartResult(0).message(),
               "Failed\nwhat is awaited here did not come about within 10ms");
}

}  // namespace
}  // namespace tutti::base
