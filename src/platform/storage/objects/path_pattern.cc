#include "platform/storage/objects/path_pattern.h"

#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace tutti::storage {
namespace {

// One component. A "*" that has taken too little takes one byte more; only the last one can have.
bool FitsComponent(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0, star = absl::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == absl::string_view::npos;
}

}  // namespace

bool MatchesPattern(absl::string_view pattern, absl::string_view path) {
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
        next[j + 1] = fits[j] && FitsComponent(one, parts[j]);
    }
    fits = std::move(next);
  }
  return fits[parts.size()];
}

std::string FolderOfPattern(absl::string_view pattern) {
  const size_t wildcard = pattern.find_first_of("*?");
  const size_t slash = pattern.substr(0, wildcard).rfind('/');
  return slash == absl::string_view::npos ? "" : std::string(pattern.substr(0, slash));
}

}  // namespace tutti::storage
