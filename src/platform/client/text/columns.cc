#include "platform/client/text/columns.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text/utf8.h"

namespace tutti::client {
namespace {

struct Character {
  char32_t code = 0xFFFD;
  size_t length = 1;  // bytes
};

// The first character of `text`, which is not empty; U+FFFD of one byte for what is not UTF-8.
Character Decode(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = base::Utf8Length(text);
  if (length == 0) return {};
  char32_t code = length == 1 ? byte(0) : byte(0) & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3F);
  return {code, length};
}

struct Range {
  char32_t first, last;
};

// Zero columns: combining marks, joiners, variation selectors (Unicode 15, the common blocks).
constexpr std::array<Range, 8> kZero = {{{0x0300, 0x036F},
                                         {0x0483, 0x0489},
                                         {0x0591, 0x05BD},
                                         {0x200B, 0x200F},
                                         {0x20D0, 0x20F0},
                                         {0xFE00, 0xFE0F},
                                         {0xFE20, 0xFE2F},
                                         {0xFEFF, 0xFEFF}}};
// Two columns: East Asian Width W and F (UAX #11), and emoji.
constexpr std::array<Range, 9> kWide = {{{0x1100, 0x115F},
                                         {0x2E80, 0x303E},
                                         {0x3041, 0xA4CF},
                                         {0xAC00, 0xD7A3},
                                         {0xF900, 0xFAFF},
                                         {0xFE30, 0xFE6F},
                                         {0xFF00, 0xFF60},
                                         {0x1F300, 0x1FAFF},
                                         {0x20000, 0x3FFFD}}};

template <size_t kCount>
bool In(const std::array<Range, kCount>& ranges, char32_t code) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [code](Range r) { return r.first <= code && code <= r.last; });
}

int ColumnsOf(char32_t code) {
  if (code < 0x300) return 1;
  return In(kZero, code) ? 0 : In(kWide, code) ? 2 : 1;
}

bool IsControl(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

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
    if (IsControl(c.code) && c.code != '\t') {
      safe += '?';
    } else {
      absl::StrAppend(&safe, text.substr(0, c.length));
    }
    text.remove_prefix(c.length);
  }
  return safe;
}

std::string TerminalLine(absl::string_view text) {
  while (absl::ConsumeSuffix(&text, "\r")) {
  }
  if (const size_t at = text.rfind('\r'); at != absl::string_view::npos) text.remove_prefix(at + 1);
  std::string safe;
  bool styled = false;
  while (!text.empty()) {
    const Character c = Decode(text);
    size_t length = c.length;
    if (c.code == 0x1b) {
      length = EscapeLength(text);
      if (length > 2 && text[1] == '[' && text[length - 1] == 'm') {
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
