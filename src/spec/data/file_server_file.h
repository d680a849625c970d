// Reads the files of file servers (docs/data/file-server.md). Pure function; thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/file_server.h"

namespace tutti::spec {

// Reads the text of a file server's file; a relative folder counts from `folder`. InvalidArgument
// holds all errors, with their lines.
absl::StatusOr<FileServer> ReadFileServerFile(absl::string_view text, absl::string_view file_name,
                                              const std::filesystem::path& folder);

}  // namespace tutti::spec
