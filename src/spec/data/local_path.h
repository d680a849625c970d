// Makes the paths that a user's files name absolute. Inside the room spec only. Pure function;
// thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

// Returns a path of the file made absolute: relative ones count from `base`, `file:` URLs are
// paths. InvalidArgument for what lies elsewhere (azureml:, https:, …).
absl::StatusOr<std::string> LocalPath(absl::string_view path, const std::filesystem::path& base);

}  // namespace tutti::spec
