#include "base/text/percent_encode.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace tutti::base {

std::string PercentEncode(absl::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool stays = absl::ascii_isalnum(byte) ||
                       absl::StrContains("-._~", absl::string_view(&c, 1)) ||
                       (keep_slash && c == '/');
    if (stays) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

}  // namespace tutti::base
