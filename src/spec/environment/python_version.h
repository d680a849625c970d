// Parses and compares the Python versions that files ask for: a version, "3.9", or comparisons as
// pip writes them, a range: ">=3.8,<3.11". Pure; hostile text is safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns what conda's match specification of a version, without blanks, asks for. One minor
// version where only that fits, whatever its patch: "=3.8.13", "3.8=build" and ">=3.8,<3.9" are
// "3.8". Else a range: ">=3.8,<3.11"; of alternatives ("3.8|3.9") the newest. "" for any, "2" if
// none of 3 fits.
std::string PythonOfConda(absl::string_view version);

// Returns whether `python` compares, so that several versions may fit.
bool IsPythonRange(absl::string_view python);

// Returns whether "3.9.18" satisfies the range, by pip's rules (PEP 440). False for what is no
// version.
bool AllowsVersion(absl::string_view range, absl::string_view version);

// Returns whether "3.6.15" or "3.6" is older than any Python that an environment can be made of.
bool IsTooOldPython(absl::string_view version);

}  // namespace tutti::spec
