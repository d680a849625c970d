// Matches paths against patterns as Azure ML's paths have them. Pure functions.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::storage {

// Returns whether the whole of `path` fits. "*" is any text without a slash, "?" one byte that is
// none, "**" as a whole component any number of components, also none.
bool MatchesPattern(absl::string_view pattern, absl::string_view path);

// Returns the folder that all matches lie in: the components before the first with a wildcard,
// "train/images" of "train/images/*/*.png"; "" if the first has one.
std::string FolderOfPattern(absl::string_view pattern);

}  // namespace tutti::storage
