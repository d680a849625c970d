// Packs a program for machines that do not have it: an archive (tar, gzip) of the program and, in
// lib/ beside it, of the libraries that it loads. The program's DT_RPATH of $ORIGIN/lib
// finds them there (tutti_travels of cmake/tutti_room.cmake). The C library is the machines' own:
// theirs may be newer than this one's, not older.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::base {

using ProgramParts = std::map<std::string, std::filesystem::path>;  // by the name in the archive

// Lists the files of the program that runs: its own file as `name`, and its shared libraries,
// without those of the C library, as "lib/NAME".
absl::StatusOr<ProgramParts> PartsOfThisProgram(const std::string& name);

// Lists the same of another program, of which the system's loader is asked what it would load. A
// script has no libraries. FailedPrecondition names a library that is not there.
absl::StatusOr<ProgramParts> PartsOfProgram(const std::string& name,
                                            const std::filesystem::path& program);

// Packs the program; equal files give equal bytes.
absl::Status PackProgram(const ProgramParts& parts, const std::filesystem::path& archive);

}  // namespace tutti::base
