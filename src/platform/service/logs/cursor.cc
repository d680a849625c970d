#include "platform/service/logs/cursor.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tutti::service {

std::string ToString(const Cursor& cursor) {
  return absl::StrCat(cursor.event, "-", cursor.position.record, "-", cursor.position.offset);
}

absl::StatusOr<Cursor> CursorFromString(absl::string_view text) {
  Cursor cursor;
  if (text.empty()) return cursor;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  const bool valid = parts.size() == 3 && absl::SimpleAtoi(parts[0], &cursor.event) &&
                     absl::SimpleAtoi(parts[1], &cursor.position.record) &&
                     absl::SimpleAtoi(parts[2], &cursor.position.offset) && cursor.event >= 0 &&
                     ToString(cursor) == text;
  if (valid) return cursor;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text.substr(0, 80), "\" is no cursor: send one that a stream line had"));
}

}  // namespace tutti::service
