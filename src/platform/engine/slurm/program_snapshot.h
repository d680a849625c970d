// Packs programs, for nodes that do not have them (base/process/packed_program.h), into the
// service's folder of snapshots.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace tutti::engine {

// Packs this program into the folder of the service's snapshots and returns its name there,
// "sha256:…". What was packed before from the same files is kept.
absl::StatusOr<std::string> PackThisProgram(const std::filesystem::path& snapshots);
// Does the same of another program, which is `name` in the archive.
absl::StatusOr<std::string> PackProgramOf(const std::string& name,
                                          const std::filesystem::path& program,
                                          const std::filesystem::path& snapshots);

}  // namespace tutti::engine
