// Explains a backup that failed because the disk that it is written to is full. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace tutti::backup {

// Returns the bytes of a file, or of all files in a folder; 0 if there is none, as far as it can be
// read.
uint64_t BytesAt(const std::filesystem::path& path);

// Returns what is free for this user on the disk of a folder; none if that is not known.
std::optional<uint64_t> FreeBytes(const std::filesystem::path& folder);

// Returns `failure` as it is, unless it came of a full disk below `work`, the temporary folder of a
// backup, whatever the file system calls that: then ResourceExhausted, with the folder that `work`
// lies in, what was free there before (`free`), what the backup takes at most (`needed`) and what
// to do. Call it as long as what was written is there.
absl::Status ExplainFullDisk(const absl::Status& failure, const std::filesystem::path& work,
                             std::optional<uint64_t> free, absl::FunctionRef<uint64_t()> needed);

}  // namespace tutti::backup
