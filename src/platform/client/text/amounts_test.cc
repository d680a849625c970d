#include "platform/client/text/amounts.h"

#include <gtest/gtest.h>

namespace tutti::client {
namespace {

TEST(Amounts, GroupsThousands) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(3210), "3,210");
  EXPECT_EQ(WithCommas(-1234567), "-1,234,567");
  EXPECT_EQ(WithCommas(-123), "-123");
}

TEST(Amounts, ShowsBytesInThreeDigits) {
  EXPECT_EQ(Bytes(0), "0 B");
  EXPECT_EQ(Bytes(999), "999 B");
  EXPECT_EQ(Bytes(1234), "1.23 kB");
  EXPECT_EQ(Bytes(45'600'000), "45.6 MB");
  EXPECT_EQ(Bytes(999'400), "999 kB");
  EXPECT_EQ(Bytes(999'999), "1.00 MB");
  EXPECT_EQ(Bytes(UINT64_MAX), "18.4 EB");
}

TEST(Amounts, ShowsHowMuchOfACopyHasCome) {
  EXPECT_EQ(PartOfCopy(12, 1000, 3'400'000, 1'200'000'000),
            "12 of 1,000 files, 3.40 MB of 1.20 GB");
}

TEST(Amounts, ShowsDurationsAsAClock) {
  EXPECT_EQ(Clock(absl::Seconds(41)), "0:41");
  EXPECT_EQ(Clock(absl::Seconds(-3)), "0:00");
  EXPECT_EQ(Clock(absl::Minutes(12) + absl::Seconds(5)), "12:05");
  EXPECT_EQ(Clock(absl::Seconds(3723)), "1:02:03");
  EXPECT_EQ(Clock(absl::Hours(51) + absl::Seconds(1)), "2 d 3:00:01");
}

TEST(Amounts, ShowsAgesRoughly) {
  EXPECT_EQ(Age(absl::Milliseconds(300)), "now");
  EXPECT_EQ(Age(absl::Seconds(59)), "59 s");
  EXPECT_EQ(Age(absl::Seconds(200)), "3 min");
  EXPECT_EQ(Age(absl::Hours(5)), "5 h");
  EXPECT_EQ(Age(absl::Hours(24 * 12)), "12 d");
}

TEST(Amounts, ShowsFractionsAsPercentages) { EXPECT_EQ(Percent(0.61234), "61.23 %"); }

TEST(Amounts, ReadsTimesAndKnowsWhatIsNone) {
  EXPECT_EQ(ParseTime("1970-01-01T00:00:02.5Z"), absl::FromUnixMillis(2500));
  EXPECT_EQ(ParseTime("soon"), absl::InfinitePast());
}

}  // namespace
}  // namespace tutti::client
