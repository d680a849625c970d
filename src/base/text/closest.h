// Finds the known word nearest to a mistyped one, for "did you mean".
#pragma once

#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::base {

// Returns the candidate at the least Levenshtein distance from `word`, or "" if none is within a
// third of the word's length (at least 1).
std::string Closest(absl::string_view word, std::span<const absl::string_view> candidates);

// Returns ` (did you mean "command"?)`, or "" when nothing is close.
std::string DidYouMean(absl::string_view word, std::span<const absl::string_view> candidates);

}  // namespace tutti::base
