#include "platform/client/text/columns.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text/utf8.h"
#include "platform/client/text/character_widths.h"

namespace tutti::client {
namespace {

struct Character {
  char32_t code = 0xFFFD;
  size_t length = 1;  // bytes
};

// Returns the first character of `text`, which is not empty; U+FFFD of one byte for what is not
// UTF-8.
Character Decode(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = base::Utf8Length(text);
  if (length == 0) return {};
  char32_t code = length == 1 ? byte(0) : byte(0) & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3F);
  return {code, length};
}

template <size_t kCount>
bool In(const std::array<CharacterRange, kCount>& ranges, char32_t code) {
  const auto behind =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](char32_t one, const CharacterRange& range) { return one < range.first; });
  return behind != ranges.begin() && code <= std::prev(behind)->last;
}

int ColumnsOf(char32_t code) {
  if (code < 0x300) return 1;
  return In(kZeroColumns, code) ? 0 : In(kTwoColumns, code) ? 2 : 1;
}

bool IsControl(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

// Returns whether it ends a line, or has what follows shown in another order (UAX #9): a name with
// these shows as another.
bool Rearranges(char32_t code) {
  return (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

// Length of the escape sequence at the start of `text`; it opens with ESC. CSI and OSC sequences
// are recognised, everything else counts as two bytes.
size_t EscapeLength(absl::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') {
    const size_t end =
        std::find_if(text.begin() + 2, text.end(), [](char c) { return c >= 0x40 && c <= 0x7E; }) -
        text.begin();
    return std::min(end + 1, text.size());
  }
  if (text[1] != ']') return 2;
  const size_t end = std::min(text.find('\a'), text.find("\x1b\\", 2));
  if (end == absl::string_view::npos) return text.size();
  return end + (text[end] == '\a' ? 1 : 2);
}

}  // namespace

int Columns(absl::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Character c = Decode(text);
    columns += ColumnsOf(c.code);
    text.remove_prefix(c.length);
  }
  return columns;
}

std::string Shorten(absl::string_view text, int columns) {
  if (Columns(text) <= columns) return std::string(text);
  if (columns <= 0) return "";
  size_t kept = 0;
  for (int used = 0; kept < text.size();) {
    const Character c = Decode(text.substr(kept));
    used += ColumnsOf(c.code);
    if (used > columns - 1) break;
    kept += c.length;
  }
  return absl::StrCat(text.substr(0, kept), "…");
}

std::string PadRight(absl::string_view text, int columns) {
  return absl::StrCat(text, std::string(std::max(0, columns - Columns(text)), ' '));
}

std::string PadLeft(absl::string_view text, int columns) {
  return absl::StrCat(std::string(std::max(0, columns - Columns(text)), ' '), text);
}

std::string Printable(absl::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const Character c = Decode(text);
    if ((IsControl(c.code) && c.code != '\t') || Rearranges(c.code)) {
      safe += '?';
    } else {
      absl::StrAppend(&safe, text.substr(0, c.length));
    }
    text.remove_prefix(c.length);
  }
  return safe;
}

absl::string_view LastDrawn(absl::string_view line) {
  while (absl::ConsumeSuffix(&line, "\r")) {
  }
  return line.substr(line.rfind('\r') + 1);
}

std::string TerminalLine(absl::string_view text, bool colours) {
  text = LastDrawn(text);
  std::string safe;
  bool styled = false;
  while (!text.empty()) {
    const Character c = Decode(text);
    size_t length = c.length;
    if (c.code == 0x1b) {
      length = EscapeLength(text);
      if (colours && length > 2 && text[1] == '[' && text[length - 1] == 'm') {
        absl::StrAppend(&safe, text.substr(0, length));
        styled = true;
      }
    } else if (!IsControl(c.code) || c.code == '\t') {
      absl::StrAppend(&safe, text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  // A line that forgets to end its colour must not colour the lines of other ranks.
  return styled ? safe + "\x1b[0m" : safe;
}

}  // namespace tutti::client
