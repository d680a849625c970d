// Has podman look on Docker Hub for an image whose name has no registry, as Docker does and
// Dockerfiles expect; podman alone looks nowhere unless its registries.conf says so. Thread-safe.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::container {

// Returns a registries.conf with Docker Hub as the only place to search; unchanged if it names its
// own.
std::string WithDockerHub(absl::string_view registries);

// Writes such a file of the one that podman finds with `variables`, and returns its path, for
// CONTAINERS_REGISTRIES_CONF. Its folders registries.conf.d are podman's all the same.
absl::StatusOr<std::filesystem::path> WriteRegistries(
    const std::map<std::string, std::string>& variables, const std::filesystem::path& folder);

}  // namespace tutti::container
