// Decodes what an address has as "%20". Pure function; thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns the text with each "%XX" as its byte; another "%" stays as it is.
std::string PercentDecoded(absl::string_view text);

}  // namespace tutti::spec
