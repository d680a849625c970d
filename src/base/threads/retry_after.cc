#include "base/threads/retry_after.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tutti::base {
namespace {

constexpr absl::string_view kRetryAfter = "tutti.retry_after_ms";

}  // namespace

absl::Status WithRetryAfter(absl::Status status, absl::Duration told) {
  const absl::Duration heeded = std::min(told, kLongestRetryAfter);
  const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(heeded, absl::Milliseconds(1)));
  if (!status.ok() && ms > 0) status.SetPayload(kRetryAfter, absl::Cord(absl::StrCat(ms)));
  return status;
}

absl::Duration RetryAfterOf(const absl::Status& status) {
  const auto note = status.GetPayload(kRetryAfter);
  int64_t ms = 0;
  if (!note.has_value() || !absl::SimpleAtoi(std::string(*note), &ms)) return absl::ZeroDuration();
  return absl::Milliseconds(ms);
}

}  // namespace tutti::base
