#include "http/client/retry_after_header.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tutti::http {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1795741200);  // Fri, 27 Nov 2026 01:00:00 GMT

absl::Duration RetryAfter(std::map<std::string, std::string> headers) {
  return RetryAfterIn({.status = 503, .headers = std::move(headers)}, kNow);
}

TEST(RetryAfter, IsANumberOfSecondsOrATime) {
  EXPECT_EQ(RetryAfter({{"retry-after", "120"}}), absl::Seconds(120));
  for (const char* time : {"Fri, 27 Nov 2026 01:00:30 GMT", "Friday, 27-Nov-26 01:00:30 GMT",
                           "Fri Nov 27 01:00:30 2026"}) {
    EXPECT_EQ(RetryAfter({{"retry-after", time}}), absl::Seconds(30)) << time;
  }
  EXPECT_EQ(RetryAfter({{"date", "Tue, 01 Dec 2026 01:00:00 GMT"},
                        {"retry-after", "Tue Dec  1 01:00:30 2026"}}),
            absl::Seconds(30));
}

TEST(RetryAfter, IsLongWhereNoNumberIsAsLarge) {
  EXPECT_GT(RetryAfter({{"retry-after", "99999999999999999999"}}), absl::Hours(24));
}

TEST(RetryAfter, OfATimeTheServersOwnClockCounts) {
  EXPECT_EQ(RetryAfter({{"date", "Fri, 27 Nov 2026 09:00:00 GMT"},
                        {"retry-after", "Fri, 27 Nov 2026 09:00:05 GMT"}}),
            absl::Seconds(5));
}

TEST(RetryAfter, IsNothingWhereItSaysNothing) {
  EXPECT_EQ(RetryAfter({}), absl::ZeroDuration());
  for (const char* text : {"", "soon", "-5", "1.5", "Fri, 27 Nov 2026 00:59:00 GMT"}) {
    EXPECT_EQ(RetryAfter({{"retry-after", text}}), absl::ZeroDuration()) << text;
  }
}

}  // namespace
}  // namespace tutti::http
