// Measures and cuts UTF-8 text (the Unicode standard, version 15, table 3-7). Pure functions.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::base {

// Returns how many bytes the character has that `text` begins with; 0 if it begins with none.
size_t Utf8Length(absl::string_view text);

// Returns the text without a character that its end has cut.
absl::string_view WholeCharacters(absl::string_view text);

// Returns the first `most` characters; if there are more, the last one is "…". Each byte that is no
// part of a character becomes "?".
std::string BoundedUtf8(absl::string_view text, size_t most = absl::string_view::npos);

}  // namespace tutti::base
