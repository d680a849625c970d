#include "base/text/path_pattern.h"

#include <vector>

#include "absl/strings/str_split.h"

namespace tutti::base {
namespace {

constexpr size_t kNone = absl::string_view::npos;

// Whether a byte is in a class, "a-z0" or "!a-z0", without its brackets.
bool IsInClass(absl::string_view members, char c) {
  const bool is_negated = members[0] == '!' || members[0] == '^';
  if (is_negated) members.remove_prefix(1);
  const auto code = [](char of) { return static_cast<unsigned char>(of); };
  for (size_t i = 0; i < members.size(); ++i) {
    const bool is_range = i + 2 < members.size() && members[i + 1] == '-';
    const char last = is_range ? members[i + 2] : members[i];
    if (code(members[i]) <= code(c) && code(c) <= code(last)) return !is_negated;
    if (is_range) i += 2;
  }
  return is_negated;
}

// Where the class that begins at `first` ends, behind its "]"; kNone if none begins there. A "]"
// that comes first is a member.
size_t EndOfClass(absl::string_view pattern, size_t first, Wildcards wildcards) {
  if (wildcards == Wildcards::kPlain || pattern[first] != '[') return kNone;
  size_t members = first + 1;
  if (members < pattern.size() && (pattern[members] == '!' || pattern[members] == '^')) ++members;
  const size_t end = pattern.find(']', members + 1);
  return end == kNone ? kNone : end + 1;
}

// Where the pattern goes on behind what one byte fits; kNone if it does not.
size_t AfterByte(absl::string_view pattern, size_t p, char c, Wildcards wildcards) {
  if (p >= pattern.size()) return kNone;
  if (const size_t end = EndOfClass(pattern, p, wildcards); end != kNone) {
    return IsInClass(pattern.substr(p + 1, end - p - 2), c) ? end : kNone;
  }
  return pattern[p] == '?' || pattern[p] == c ? p + 1 : kNone;
}

// One component. A "*" that has taken too little takes one byte more; only the last one can have.
bool FitsComponent(absl::string_view pattern, absl::string_view text, Wildcards wildcards) {
  size_t p = 0, t = 0, star = kNone, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (const size_t next = AfterByte(pattern, p, text[t], wildcards); next != kNone) {
      p = next;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == kNone;
}

size_t FirstWildcard(absl::string_view text, Wildcards wildcards) {
  return text.find_first_of(wildcards == Wildcards::kPlain ? "*?" : "*?[");
}

}  // namespace

bool HasWildcard(absl::string_view text, Wildcards wildcards) {
  return FirstWildcard(text, wildcards) != kNone;
}

bool MatchesPattern(absl::string_view pattern, absl::string_view path, Wildcards wildcards) {
  const std::vector<absl::string_view> patterns = absl::StrSplit(pattern, '/');
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  // fits[j]: the patterns so far fit the first j components.
  std::vector<bool> fits(parts.size() + 1, false);
  fits[0] = true;
  for (const absl::string_view one : patterns) {
    std::vector<bool> next(parts.size() + 1, false);
    if (one == "**") {
      bool any = false;
      for (size_t j = 0; j <= parts.size(); ++j) next[j] = any = any || fits[j];
    } else {
      for (size_t j = 0; j < parts.size(); ++j)
        next[j + 1] = fits[j] && FitsComponent(one, parts[j], wildcards);
    }
    fits = std::move(next);
  }
  return fits[parts.size()];
}

std::string FolderOfPattern(absl::string_view pattern, Wildcards wildcards) {
  const size_t wildcard = FirstWildcard(pattern, wildcards);
  const size_t slash = pattern.substr(0, wildcard).rfind('/');
  return slash == kNone ? "" : std::string(pattern.substr(0, slash));
}

}  // namespace tutti::base
