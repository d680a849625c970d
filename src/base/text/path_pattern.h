// Matches paths against patterns as Azure ML's paths have them. Pure functions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::base {

// Which wildcards a pattern has.
enum class Wildcards {
  kPlain,    // "*", "**" and "?"
  kClasses,  // also "[abc]", "[a-z]" and "[!a-z]": one byte that is, or is none, of these
};

// Returns whether the text has any.
bool HasWildcard(absl::string_view text, Wildcards wildcards = Wildcards::kPlain);

// Returns whether the whole of `path` fits. "*" is any text without a slash, "?" one byte that is
// none, "**" as a whole component any number of components, also none. A "[" that no "]" ends in
// its component stands for itself.
bool MatchesPattern(absl::string_view pattern, absl::string_view path,
                    Wildcards wildcards = Wildcards::kPlain);

// Returns the folder that all matches lie in: the components before the first with a wildcard,
// "train/images" of "train/images/*/*.png"; "" if the first has one. Of a text without any it is
// the folder that the path lies in.
std::string FolderOfPattern(absl::string_view pattern, Wildcards wildcards = Wildcards::kPlain);

}  // namespace tutti::base
