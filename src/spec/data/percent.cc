#include "spec/data/percent.h"

#include "absl/strings/ascii.h"

namespace tutti::spec {
namespace {

int HexDigit(char c) {
  if (absl::ascii_isdigit(c)) return c - '0';
  const char lower = absl::ascii_tolower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

}  // namespace

std::string PercentDecoded(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
                        HexDigit(text[i + 2]) >= 0;
    decoded +=
        escape ? static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2])) : text[i];
    if (escape) i += 2;
  }
  return decoded;
}

}  // namespace tutti::spec
