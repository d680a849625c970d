#include "platform/client/text/amounts.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tutti::client {

std::string WithCommas(int64_t number) {
  std::string digits = absl::StrCat(number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string Bytes(uint64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  static constexpr std::array<const char*, 6> kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.5 would be printed as "1000": it belongs to the next unit.
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  const int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return absl::StrFormat("%.*f %s", decimals, value, kUnits[unit]);
}

std::string PartOfCopy(int64_t files, int64_t of_files, int64_t bytes, int64_t of_bytes) {
  return absl::StrCat(WithCommas(files), " of ", WithCommas(of_files), " files, ",
                      Bytes(static_cast<uint64_t>(bytes)), " of ",
                      Bytes(static_cast<uint64_t>(of_bytes)));
}

std::string Clock(absl::Duration duration) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(duration));
  const int64_t minutes = seconds / 60 % 60, hours = seconds / 3600 % 24, days = seconds / 86400;
  if (days > 0) {
    return absl::StrFormat("%d d %d:%02d:%02d", days, hours, minutes, seconds % 60);
  }
  if (hours > 0) return absl::StrFormat("%d:%02d:%02d", hours, minutes, seconds % 60);
  return absl::StrFormat("%d:%02d", minutes, seconds % 60);
}

std::string Age(absl::Duration duration) {
  if (duration < absl::Seconds(1)) return "now";
  if (duration < absl::Minutes(1)) return absl::StrCat(absl::ToInt64Seconds(duration), " s");
  if (duration < absl::Hours(1)) return absl::StrCat(absl::ToInt64Minutes(duration), " min");
  if (duration < absl::Hours(48)) return absl::StrCat(absl::ToInt64Hours(duration), " h");
  return absl::StrCat(absl::ToInt64Hours(duration) / 24, " d");
}

std::string Percent(double fraction) { return absl::StrFormat("%.2f %%", fraction * 100); }

absl::Time ParseTime(const std::string& text) {
  absl::Time time;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, nullptr)) return absl::InfinitePast();
  return time;
}

}  // namespace tutti::client
