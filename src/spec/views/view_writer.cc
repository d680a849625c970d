#include "spec/views/view_writer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/time/civil_time.h"
#include "spec/json/json_fields.h"

namespace tutti::spec {

// What needs more than quotes is left to the library.
void AppendQuoted(absl::string_view text, std::string& to) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
  });
  if (plain) {
    absl::StrAppend(&to, "\"", text, "\"");
  } else {
    to += Dump(nlohmann::json(std::string(text)));
  }
}

void AppendNumber(double value, std::string& to) {
  to += std::isfinite(value) ? Dump(nlohmann::json(value)) : "null";
}

// absl::FormatTime takes some times as long.
std::string Rfc3339(absl::Time time) {
  const absl::CivilSecond at = absl::ToCivilSecond(time, absl::UTCTimeZone());
  const int64_t micros = absl::ToInt64Microseconds(time - absl::FromCivil(at, absl::UTCTimeZone()));
  std::array<char, 48> text;
  const int length = std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
                                   static_cast<int>(at.year()), at.month(), at.day(), at.hour(),
                                   at.minute(), at.second(), static_cast<int>(micros));
  return std::string(text.data(), static_cast<size_t>(length));
}

std::string Rfc3339(const std::optional<absl::Time>& time) { return time ? Rfc3339(*time) : ""; }

}  // namespace tutti::spec
