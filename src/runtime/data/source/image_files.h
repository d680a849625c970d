// Finds and reads images that are files of their own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

// Returns what lies below `folder` at any depth and ends as an image does (split_names.h), by its
// path from there, sorted. Errors name the folder.
absl::StatusOr<std::vector<std::string>> ImagesBelow(const std::filesystem::path& folder);

// Returns the file's bytes in `scratch`, which the result is of. InvalidArgument: more than 256
// MiB.
absl::StatusOr<absl::string_view> ReadImageFile(const std::filesystem::path& path,
                                                std::string& scratch);

}  // namespace tutti::data
