// Copies the files of an environment or a component that is kept under a name, so that they stay as
// they are whatever becomes of the originals.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::client {

struct FilesToKeep {
  std::vector<std::filesystem::path> files;  // absolute; each once
  std::string digest;                        // "sha256:…" of their places and contents
};

// Lists the files of `parts`, which are files and folders; the first part is the file that names
// the others, and places count from its folder. Folders are listed without .git and what their
// ignore file names, like a job's code, those of `builds` as an image's build gets them
// (snapshot.h). What lies below `home` is kept there already and left out, as is what is not there.
absl::StatusOr<FilesToKeep> FindFilesToKeep(const std::vector<std::filesystem::path>& parts,
                                            const std::filesystem::path& home,
                                            const std::vector<std::filesystem::path>& builds = {});

// Returns where the copy of a file lies below `folder`: at its absolute path, so that the files
// find each other as before, also by "..".
std::filesystem::path KeptPath(const std::filesystem::path& folder,
                               const std::filesystem::path& file);

// Copies them into `folder`, in place of what is there. It appears whole or not at all.
absl::Status KeepFiles(const FilesToKeep& kept, const std::filesystem::path& folder);

}  // namespace tutti::client
