// Writes what the service answered as JSON or YAML, for programs.
#pragma once

#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

enum class Format { kTable, kJson, kYaml };

// Writes a JSON text, indented, or as the same value in YAML, with its keys in the order of the
// text. Internal if it is no JSON. `format` is not kTable.
absl::Status WriteStructured(std::ostream& out, absl::string_view json, Format format);

}  // namespace tutti::client
