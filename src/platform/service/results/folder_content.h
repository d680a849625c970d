// Hashes, links and copies folders of results as wholes. Thread-safe.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/service/results/file_digests.h"

namespace tutti::service {

// Hashes a file's bytes, or the names and bytes of all files below a folder; times and owners do
// not count. NotFound if there is nothing, Cancelled as FileDigests says.
absl::StatusOr<std::string> DigestOf(const std::filesystem::path& path, FileDigests& digests);

// Gives `to` the files of `from`, a file or a folder, as hard links (copies, where the file system
// has none). What was there before is gone. A part of it is never seen under the name `to`.
absl::Status LinkContent(const std::filesystem::path& from, const std::filesystem::path& to);

// Does the same with files of their own, so that what is written to one is not seen in the other:
// clones where the file system has them, which take no time and no space, else copies.
absl::Status CopyContent(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tutti::service
