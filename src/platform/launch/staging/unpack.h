// Unpacks a code archive (tar, zstd) into a fresh folder, trusting nothing in it.
//
// Why no entry can write outside of the folder: names are relative and without "..", the folder is
// empty at the start, and links are made after all files, so no file is written through one. Links
// must lead to a place in the folder, which is looked at once all of them exist.
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace tutti::launch {

// Unpacks an archive: `folder` is made, or is empty. InvalidArgument names the entry that is
// refused: one that would leave the folder, a device, a socket, a pipe. On an error the folder's
// content is removed.
absl::Status UnpackArchive(const std::filesystem::path& archive,
                           const std::filesystem::path& folder);

}  // namespace tutti::launch
