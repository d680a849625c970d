// Explains why packages could not be installed, in one line that names the lines of the job's
// files. Pure functions; thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "spec/types/job.h"

namespace tutti::spec {

// Says which requirements an installer's error is about, with their lines, and the error in one
// line, with what a job can do where uv advises on a project's pyproject.toml.
std::string ExplainFailure(const Environment& environment, const std::string& error);

// Puts uv's error into one line, without what uv draws; a long one is shortened.
std::string InOneLine(absl::string_view text);

}  // namespace tutti::spec
