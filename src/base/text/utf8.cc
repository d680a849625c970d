#include "base/text/utf8.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tutti::base {

size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool out_of_range = (lead == 0xED && byte(1) > 0x9F) || (lead == 0xF4 && byte(1) > 0x8F);
  return overlong || out_of_range ? 0 : length;
}

std::string BoundedUtf8(absl::string_view text, size_t most) {
  std::string result;
  for (size_t characters = 1; !text.empty(); ++characters) {
    const size_t length = Utf8Length(text);
    const absl::string_view rest = text.substr(std::max<size_t>(length, 1));
    if (characters >= most && !rest.empty()) return result + "…";
    absl::StrAppend(&result, length == 0 ? "?" : text.substr(0, length));
    text = rest;
  }
  return result;
}

absl::string_view WholeCharacters(absl::string_view text) {
  for (size_t tail = 1; tail < 4 && tail <= text.size(); ++tail) {
    const auto lead = static_cast<unsigned char>(text[text.size() - tail]);
    if ((lead & 0xC0) == 0x80) continue;  // the character began before it
    const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    return length > tail ? text.substr(0, text.size() - tail) : text;
  }
  return text;
}

}  // namespace tutti::base
