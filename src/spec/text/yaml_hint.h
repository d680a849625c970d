// Suggests what to correct where a text cannot be read as YAML, in words that fit its line; the
// parser names only what it stumbled over. Pure. Inside the room spec only.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns `message` as it is if nothing is known of the line. `line`: the parser's, from 0.
std::string YamlHint(absl::string_view text, int line, absl::string_view message);

}  // namespace tutti::spec
