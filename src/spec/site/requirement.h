// Parses one requirement in pip's words, "Foo_Bar[x]>=1,<2; python_version<'3.9'", as far as tutti
// has to know its parts. Pure.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "spec/text/diagnostics.h"
#include "spec/types/job.h"

namespace tutti::spec {

// The package that is tutti's own, whatever version is asked for: PyPI's last release is of 2023
// and does not compile against today's frameworks.
inline constexpr absl::string_view kHorovod = "horovod";

// Returns what is installed for `text`, which stands at `location`: tutti's own package for any
// requirement of Horovod, which a warning at `line` says, unless a built-in table asks for it; else
// `text`.
Requirement RequirementOf(std::string text, std::string location, int line,
                          Diagnostics& diagnostics);

// Adds that warning.
void NoteWhichHorovodRuns(int line, Diagnostics& diagnostics);

// Returns the package's name as indexes compare it (PEP 503): "Foo_Bar[x]>=1" is "foo-bar", and so
// are "./foo_bar" and "git+https://host/foo-bar.git".
std::string PackageName(absl::string_view requirement);

// Returns what it says of versions, with its marker: "==2.5.0; python_version<'3.9'"; "" if it says
// nothing of them, or is an address or a path.
std::string VersionsOf(absl::string_view requirement);

// Returns the version to which it pins its package, "2.5.0" of "a==2.5.0" and "2.5.*" of
// "a==2.5.*"; "" if it pins none.
std::string PinnedVersion(absl::string_view requirement);

// Turns the versions that it names into the least ones: "a==1.2", "a~=1.2" and "a==1.2.*" are
// "a>=1.2".
std::string WithoutPins(absl::string_view requirement);

// Returns whether a built-in table names it, and no file of the user.
bool IsOfBuiltInTable(const Requirement& requirement);

// Returns the Python that a name or an image's tag says, "3.9" of "python:3.9-slim" and of
// "minimal-ubuntu22.04-py39-cpu-inference"; "" if it says none.
std::string PythonInName(absl::string_view name);

}  // namespace tutti::spec
