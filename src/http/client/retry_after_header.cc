#include "http/client/retry_after_header.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace tutti::http {
namespace {

// Reads a time in one of the three forms of RFC 9110 (5.6.7), of which the last two are obsolete:
// "Fri, 27 Nov 2026 01:00:00 GMT", "Friday, 27-Nov-26 01:00:00 GMT", "Fri Nov 27 01:00:00 2026".
std::optional<absl::Time> TimeIn(const ClientResponse& answer, const char* name) {
  const auto found = answer.headers.find(name);
  if (found == answer.headers.end()) return std::nullopt;
  for (const char* form :
       {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"}) {
    absl::Time time;
    std::string error;
    if (absl::ParseTime(form, found->second, &time, &error)) return time;
  }
  return std::nullopt;
}

// A number that is too large for an integer means for ever.
std::optional<int64_t> SecondsIn(const std::string& text) {
  int64_t seconds = 0;
  if (absl::SimpleAtoi(text, &seconds)) return std::max<int64_t>(seconds, 0);
  if (text.empty() || !std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) {
    return std::nullopt;
  }
  return std::numeric_limits<int64_t>::max();
}

}  // namespace

absl::Duration RetryAfterIn(const ClientResponse& answer, absl::Time now) {
  const auto found = answer.headers.find("retry-after");
  if (found == answer.headers.end()) return absl::ZeroDuration();
  if (const auto seconds = SecondsIn(found->second)) return absl::Seconds(*seconds);
  const std::optional<absl::Time> until = TimeIn(answer, "retry-after");
  if (!until) return absl::ZeroDuration();
  return std::max(*until - TimeIn(answer, "date").value_or(now), absl::ZeroDuration());
}

}  // namespace tutti::http
