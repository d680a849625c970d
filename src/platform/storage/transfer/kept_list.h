// Keeps a list of a place as a file, so that who serves its objects next need not list it again.
// One line of JSON says what the place is and how many objects follow, then each has its own, as in
// an answer of the program. Thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/storage/transfer/place_survey.h"

namespace tutti::storage {

// Writes the file, for its owner alone; one that is there is replaced. Errors are the disk's:
// nothing is there then.
absl::Status KeepList(const Survey& survey, const std::filesystem::path& file);

// Reads it back. NotFound if it is not there; DataLoss if it is no such file, or not all of one.
absl::StatusOr<Survey> ReadKeptList(const std::filesystem::path& file);

}  // namespace tutti::storage
