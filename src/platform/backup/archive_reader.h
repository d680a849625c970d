// Reads the archive of a backup and proves that it is whole: its last entry, SHA256SUMS, is what
// follows from all others. Trusts no name in it: all are relative and without "..", the folder is
// empty at the start, and links are made after all files, so no file is written through one.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::backup {

// Unpacks it into `folder`, which is there, for its owner alone, and returns the content of the
// entry `head`, which is not unpacked. NotFound if there is no such file, InvalidArgument if it is
// no archive with such an entry, DataLoss if it is damaged; the folder may hold a part then.
absl::StatusOr<std::string> UnpackArchive(const std::filesystem::path& file,
                                          const std::filesystem::path& folder,
                                          const std::string& head);

}  // namespace tutti::backup
