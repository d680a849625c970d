// Finds uv, the program that installs Python packages: this machine's, or one of tutti's own, which
// pip installs the first time. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace tutti::container {

// Returns uv's path. `folder`: where one of our own lies (uv/bin/uv) and what pip said (uv.log).
// FailedPrecondition, with the remedy; Unavailable: this machine has no way to the package index;
// Cancelled once `cancelled` is set.
absl::StatusOr<std::string> FindUv(const std::filesystem::path& folder,
                                   const std::atomic<bool>& cancelled);

// Returns what uv is run with: this machine's variables, uv told what pip was told of indexes, its
// cache and the interpreters that it fetches below `folder`, and pyenv's interpreters at the end of
// PATH. uv fetches none by itself (python.h does).
std::map<std::string, std::string> UvVariables(const std::filesystem::path& folder);

}  // namespace tutti::container
