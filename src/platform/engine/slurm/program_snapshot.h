// This program as nodes get it that do not have it: an archive (tar, gzip) of `tutti` and of the
// libraries that it has loaded, in lib/ beside it, where it looks first
// (apps/tutti/CMakeLists.txt). The C library is the nodes' own: theirs may be newer than this
// machine's, not older.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace tutti::engine {

// Into the folder of the service's snapshots; its name there, "sha256:…". What was packed before
// from the same files is kept.
absl::StatusOr<std::string> PackThisProgram(const std::filesystem::path& snapshots);

}  // namespace tutti::engine
