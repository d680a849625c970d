// Makes the PATH of a job's processes. Pure function; thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns PATH of processes that run in no image: that of `variables`, which the job sets, else
// that of `own`, the machine's (/usr/local/bin:/usr/bin:/bin without one); behind `program_folder`,
// where tutti's programs are, and `python`, the job's Python environment. The latter two may be "".
std::string ProcessPath(const std::map<std::string, std::string>& variables,
                        const std::map<std::string, std::string>& own,
                        absl::string_view program_folder, absl::string_view python = "");

}  // namespace tutti::spec
