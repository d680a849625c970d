#include "platform/service/retention/clock_jump.h"

#include <gmock/gmock.h>

#include "absl/time/clock.h"
#include "base/file.h"

namespace tutti::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kHour = absl::Hours(1), kYear = absl::Hours(365 * 24);
const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

// A clock that is `ahead` after the machine has run for that long.
ClockMark At(absl::Duration since_boot, absl::Duration ahead = absl::ZeroDuration(),
             const std::string& boot = "a") {
  return {boot, since_boot, kStart + since_boot + ahead};
}

// Returns what is known after each of these looks.
std::optional<ClockRecord> After(const std::vector<ClockMark>& looks) {
  std::optional<ClockRecord> record;
  for (const ClockMark& look : looks) record = LookAtClock(record, look);
  return record;
}
bool InDoubt(const std::vector<ClockMark>& looks) { return After(looks)->doubted.has_value(); }

TEST(ClockJump, AClockThatRunsIsBelieved) {
  EXPECT_FALSE(InDoubt({At(kHour)}));
  EXPECT_FALSE(InDoubt({At(kHour), At(2 * kHour), At(2000 * kHour, absl::Minutes(30))}));
}

TEST(ClockJump, OneThatWasSetAheadIsBelievedAfterADayOfTheMachinesTime) {
  std::vector<ClockMark> looks = {At(kHour), At(2 * kHour, kYear)};
  EXPECT_TRUE(InDoubt(looks));
  for (int hours = 3; hours < 26; ++hours) looks.push_back(At(hours * kHour, kYear));
  EXPECT_TRUE(InDoubt(looks));
  looks.push_back(At(26 * kHour, kYear));
  EXPECT_FALSE(InDoubt(looks));
  looks.push_back(At(27 * kHour, kYear));
  EXPECT_FALSE(InDoubt(looks));
}

TEST(ClockJump, EachJumpBeginsTheDayAnew) {
  std::vector<ClockMark> looks = {At(kHour), At(2 * kHour, kYear), At(20 * kHour, 2 * kYear)};
  looks.push_back(At(30 * kHour, 2 * kYear));
  EXPECT_TRUE(InDoubt(looks));
  looks.push_back(At(44 * kHour, 2 * kYear));
  EXPECT_FALSE(InDoubt(looks));
}

TEST(ClockJump, OneThatIsSetRightIsBelievedAtOnce) {
  EXPECT_FALSE(InDoubt({At(kHour), At(2 * kHour, kYear), At(3 * kHour)}));
  EXPECT_FALSE(InDoubt({At(kHour), At(2 * kHour, -kYear), At(3 * kHour)})) << "it was set back";
  EXPECT_TRUE(InDoubt({At(kHour), At(2 * kHour, -kYear), At(3 * kHour, kYear)}));
}

// Else nothing would be a jump until that year.
TEST(ClockJump, AFirstLookAtAClockSetAheadIsForgottenAfterADay) {
  std::vector<ClockMark> looks = {At(kHour, 14 * kYear), At(2 * kHour)};
  EXPECT_FALSE(InDoubt(looks));
  EXPECT_TRUE(InDoubt({looks[0], looks[1], At(3 * kHour, 4 * kYear)})) << "within that day too";
  for (int hours = 3; hours <= 26; ++hours) looks.push_back(At(hours * kHour));
  EXPECT_EQ(After(looks)->trusted.wall, looks.back().wall);
  looks.push_back(At(27 * kHour, 4 * kYear));
  EXPECT_TRUE(InDoubt(looks));
}

TEST(ClockJump, AMachineMayHaveBeenOffForAWeek) {
  EXPECT_FALSE(InDoubt({At(kHour), At(kHour, 6 * 24 * kHour, "b")}));
  std::vector<ClockMark> looks = {At(kHour), At(kHour, kYear, "b"), At(20 * kHour, kYear, "b")};
  EXPECT_TRUE(InDoubt(looks));
  looks.push_back(At(kHour, kYear + 20 * kHour, "c"));
  EXPECT_TRUE(InDoubt(looks)) << "its day is of one start of the machine";
  looks.push_back(At(26 * kHour, kYear + 20 * kHour, "c"));
  EXPECT_FALSE(InDoubt(looks));
}

TEST(ClockJump, IsKnownOverARestartAndSaid) {
  const base::TemporaryDirectory home;
  const std::filesystem::path file = home.path() / "retention_clock";
  EXPECT_TRUE(CheckClock(file, At(kHour)).ok());
  const absl::Status jumped = CheckClock(file, At(2 * kHour, kYear));
  EXPECT_TRUE(absl::IsFailedPrecondition(jumped));
  EXPECT_THAT(std::string(jumped.message()),
              AllOf(HasSubstr("this machine's clock was set ahead: it says 2028-01-15T10:00:00Z, "
                              "and can be at 2027-01-15T11:00:00Z at the most"),
                    HasSubstr("which is in 24 hours; if it is right, say so: tutti prune ")));
  EXPECT_FALSE(CheckClock(file, At(3 * kHour, kYear)).ok());
  EXPECT_TRUE(CheckClock(file, At(27 * kHour, kYear)).ok());
  EXPECT_FALSE(CheckClock(file, At(28 * kHour, 2 * kYear)).ok());
  EXPECT_TRUE(CheckClock(file, At(29 * kHour, 2 * kYear), /*is_right=*/true).ok());
  EXPECT_TRUE(CheckClock(file, At(30 * kHour, 2 * kYear)).ok());
  EXPECT_TRUE(CheckClock(home.path() / "none/file", At(kHour)).ok()) << "no disk takes it";
  ASSERT_TRUE(base::WriteFileAtomic(file, "{\"trusted\": 7}").ok());
  EXPECT_TRUE(CheckClock(file, At(28 * kHour)).ok()) << "what is damaged is as none";
}

}  // namespace
}  // namespace tutti::service
