// Asks this machine for its programs, its host name and the id of its boot. Thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::base {

// Returns where execvp would find a program in the PATH of `variables`
// (/usr/local/bin:/usr/bin:/bin without one); a name with "/" is its own path. NotFound names the
// folders that were looked at.
absl::StatusOr<std::string> FindProgram(absl::string_view name,
                                        const std::map<std::string, std::string>& variables);

// Returns the machine's name, or its namespace's; "" if it has none.
std::string HostName();

// Differs after each start of the machine: no process of another one's lives. "" if it is unknown.
// Read once.
std::string BootId();

}  // namespace tutti::base
