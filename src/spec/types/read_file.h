// ReadFileFunction gives readers of job files the content of the files that these name.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/statusor.h"

namespace tutti::spec {

// The content of a file that a job file names.
using ReadFileFunction =
    std::function<absl::StatusOr<std::string>(const std::filesystem::path& file)>;

// Reads a file of at most 1 MiB.
absl::StatusOr<std::string> ReadFromDisk(const std::filesystem::path& file);

}  // namespace tutti::spec
