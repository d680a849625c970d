#include "spec/text/yaml_hint.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

using Lines = std::vector<absl::string_view>;

absl::string_view IndentationOf(absl::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

// The key of "key: value" or "key:"; or "".
absl::string_view KeyOf(absl::string_view line) {
  const absl::string_view rest = absl::StripAsciiWhitespace(line);
  const size_t colon = rest.find(':');
  const bool is_key =
      colon != absl::string_view::npos && (colon + 1 == rest.size() || rest[colon + 1] == ' ') &&
      std::all_of(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(colon),
                  [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-'; });
  return is_key ? rest.substr(0, colon) : "";
}

// What stands behind the key, or behind the "-" of a list.
absl::string_view ValueOf(absl::string_view line) {
  absl::string_view rest = absl::StripAsciiWhitespace(line);
  while (absl::ConsumePrefix(&rest, "- ")) rest = absl::StripLeadingAsciiWhitespace(rest);
  if (const absl::string_view key = KeyOf(rest); !key.empty()) rest.remove_prefix(key.size() + 1);
  return absl::StripLeadingAsciiWhitespace(rest);
}

// A key that is deeper than the value-holding one before it.
bool IsTooDeep(const Lines& lines, size_t at) {
  if (KeyOf(lines[at]).empty()) return false;
  for (size_t i = at; i-- > 0;) {
    const absl::string_view before = absl::StripAsciiWhitespace(lines[i]);
    if (before.empty() || before[0] == '#') continue;
    return !absl::EndsWith(before, ":") &&
           IndentationOf(lines[at]).size() > IndentationOf(lines[i]).size();
  }
  return false;
}

}  // namespace

std::string YamlHint(absl::string_view text, int line, absl::string_view message) {
  const Lines lines = absl::StrSplit(text, '\n');
  const size_t at = static_cast<size_t>(std::max(line, 0));
  if (at >= lines.size()) return std::string(message);
  if (absl::StrContains(IndentationOf(lines[at]), '\t')) {
    return "a tab indents the line; write spaces";
  }
  const absl::string_view value = ValueOf(lines[at]);
  for (const absl::string_view begin : {"{{", "%", "@", "`"}) {
    if (!absl::StartsWith(value, begin)) continue;
    return absl::StrCat("a text that begins with \"", begin, "\" needs quotes");
  }
  const bool misplaced = message == "illegal map value";
  if ((misplaced || message == "end of map not found") && IsTooDeep(lines, at)) {
    return absl::StrCat("key \"", KeyOf(lines[at]).substr(0, 80),
                        "\" is indented deeper than the line before it, which has its value "
                        "already; keys of one mapping stand in one column");
  }
  return misplaced ? "illegal map value: a text with \": \" in it needs quotes, or its own lines "
                     "after \"|\" or \">-\""
                   : std::string(message);
}

}  // namespace tutti::spec
