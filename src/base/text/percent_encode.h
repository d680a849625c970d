// Percent escapes of addresses (RFC 3986).
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::base {

// Turns everything but letters, digits and "-._~" into %XX; with `keep_slash` also "/" stays, for
// paths.
std::string PercentEncode(absl::string_view text, bool keep_slash = false);

}  // namespace tutti::base
