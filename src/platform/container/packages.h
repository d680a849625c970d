// Builds an image with packages of PyPI on top of another, for its own Python: by uv where this
// machine has it, else by the image's pip. It is built once on a node, under a lock, and known by
// what goes into it.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "spec/types/job.h"

namespace tutti::container {

// Makes an image from `base`, one of this node by its id, which has the name `base_name`; returns
// the new one's id. `folder` takes
// locks, logs and uv's cache. FailedPrecondition names the lines of the packages that cannot be
// had; Cancelled.
absl::StatusOr<std::string> WithPackages(const spec::Environment& environment,
                                         const std::string& base_name, const std::string& base,
                                         const std::filesystem::path& folder,
                                         const std::atomic<bool>& cancelled);

}  // namespace tutti::container
