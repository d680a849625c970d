// Finds and reads images that are files of their own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/data/source/left_out.h"

namespace tutti::data {

// Returns what lies below `root`/`folder` at any depth and ends as an image does
// (decode/image_decoder.h), by its path from there, sorted; other files, by their path from `root`,
// are `left_out`. Errors name the folder.
absl::StatusOr<std::vector<std::string>> ImagesBelow(const std::filesystem::path& root,
                                                     const std::string& folder,
                                                     LeftOutFiles& left_out);

// Returns the file's bytes in `scratch`, which the result is of. InvalidArgument: more than 256
// MiB.
absl::StatusOr<absl::string_view> ReadImageFile(const std::filesystem::path& path,
                                                std::string& scratch);

}  // namespace tutti::data
