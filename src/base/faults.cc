#include "base/faults.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tutti::base {

void Faults::Add(const absl::Status& status) {
  if (status.ok()) return;
  all_exhausted_ &= absl::IsResourceExhausted(status);
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) lines_.emplace_back(line);
  }
}

absl::Status Faults::status() const {
  if (lines_.empty()) return absl::OkStatus();
  const auto code =
      all_exhausted_ ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument;
  return absl::Status(code, absl::StrJoin(lines_, "\n"));
}

}  // namespace tutti::base
