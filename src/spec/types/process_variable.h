// Checks that Linux lets a process have a variable in its environment.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns why no process can be given the variable: "has 131070 bytes; …"; "" if one can.
std::string WhyTooLong(absl::string_view name, absl::string_view value);

}  // namespace tutti::spec
