#include "base/text/binary_size.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"

namespace tutti::base {

std::string BinarySize(uint64_t bytes) {
  const double size = static_cast<double>(bytes);
  return bytes < uint64_t{1} << 30 ? absl::StrFormat("%.0f MiB", size / 0x1p20)
                                   : absl::StrFormat("%.1f GiB", size / 0x1p30);
}

std::optional<uint64_t> ReadSize(absl::string_view text) {
  static constexpr double kMost = 1e18;
  static constexpr std::array<std::pair<absl::string_view, double>, 6> kUnits = {
      {{"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"mib", 0x1p20}, {"gib", 0x1p30}, {"tib", 0x1p40}}};
  const std::string lower = absl::AsciiStrToLower(absl::StripAsciiWhitespace(text));
  const size_t end = lower.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string::npos) return std::nullopt;
  const absl::string_view unit = absl::StripAsciiWhitespace(absl::string_view(lower).substr(end));
  double number = 0;
  if (!absl::SimpleAtod(lower.substr(0, end), &number)) return std::nullopt;
  for (const auto& [name, factor] : kUnits) {
    if (unit == name && number * factor <= kMost) return static_cast<uint64_t>(number * factor);
  }
  return std::nullopt;
}

}  // namespace tutti::base
