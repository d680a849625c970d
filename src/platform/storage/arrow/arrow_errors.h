// Tells from what Arrow says of an error what it is. Pure function.
#pragma once

#include <arrow/status.h>

#include "absl/status/status.h"

namespace tutti::storage {

// Returns the error of a file system by its number, all others by error_text.h.
absl::Status StatusFrom(const arrow::Status& status);

// Does the same for an object that is read from Google's storage: DataLoss where the library has
// closed what it reads from.
absl::Status StatusOfGoogleRead(const arrow::Status& status);

}  // namespace tutti::storage
