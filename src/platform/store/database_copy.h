// CopyDatabase copies a store's file, which another process may be writing meanwhile
// (docs/backup.md).
#pragma once

#include <filesystem>

#include "absl/status/status.h"

namespace tutti::store {

// Copies what is committed now, as one moment has it, to the new file `to` (mode 0600): who writes
// goes on meanwhile. NotFound if `from` is not there; Unavailable if a program keeps others out;
// ResourceExhausted, with the path of `to`, if its disk is full.
absl::Status CopyDatabase(const std::filesystem::path& from, const std::filesystem::path& to);

// Prepares a copy that is to be written to from now on: no number of a job or an event is given
// twice, though the file that it was copied from went on giving them.
absl::Status SkipNumbersGivenSince(const std::filesystem::path& copy);

}  // namespace tutti::store
