// Unpacks a code archive (tar, zstd) into a fresh folder, trusting nothing in it.
//
// Why no entry can write outside of the folder: names are relative and without "..", the folder is
// empty at the start, and links are made after all files, so no file is written through one. Links
// must lead to a place in the folder, which is looked at once all of them exist.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::launch {

// Returns the name with "./" and doubled slashes taken out; "" for the folder itself.
// InvalidArgument if it is absolute, has a ".." part or a NUL, or is longer than a path may be.
absl::StatusOr<std::string> SafeRelativePath(absl::string_view name);

// Unpacks an archive: `folder` is made, or is empty. InvalidArgument names the entry that is
// refused: one that would leave the folder, a device, a socket, a pipe. On an error the folder's
// content is removed.
absl::Status UnpackArchive(const std::filesystem::path& archive,
                           const std::filesystem::path& folder);

}  // namespace tutti::launch
