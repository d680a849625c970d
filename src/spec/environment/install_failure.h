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

// Returns why the package index could not be reached, in the words of uv or pip without their
// retries: "https://pypi.org/simple/six/: dns error: Name or service not known"; "" where that is
// not what went wrong, or where the place of one of the packages' own could not be reached.
std::string WhyIndexIsAway(const Environment& environment, absl::string_view said);

// Returns the text with "****" for the user and the password of each address in it.
std::string WithoutPasswords(absl::string_view text);

// Puts uv's error into one line, without what uv draws; a long one is shortened.
std::string InOneLine(absl::string_view text);

}  // namespace tutti::spec
