// The names of a dataset's classes: classes.txt, one name a line; a label is a line's number from
// 0.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tutti::data {

// NotFound without the file; InvalidArgument for an empty file, an empty line or a name that stands
// there twice. Errors name file and line.
absl::StatusOr<std::vector<std::string>> ReadClasses(const std::filesystem::path& path);

}  // namespace tutti::data
