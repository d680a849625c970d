#include "platform/storage/arrow/arrow_errors.h"

#include <arrow/util/io_util.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "platform/storage/objects/error_text.h"

namespace tutti::storage {

absl::Status StatusFrom(const arrow::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int error_number = arrow::internal::ErrnoFromStatus(status);
  if (error_number == ENOENT) return absl::NotFoundError("nothing is at this path");
  if (error_number != 0) return absl::ErrnoToStatus(error_number, "the file system refuses");
  return StatusFromText(status.ToString());
}

// Google's library compares the hash of an object that is read as a whole itself, and closes the
// stream without an error message if it differs.
absl::Status StatusOfGoogleRead(const arrow::Status& status) {
  if (!absl::StrContains(status.message(), "Cannot read from closed file")) {
    return StatusFrom(status);
  }
  return absl::DataLossError("the store has ended what it sent: its hash may not match");
}

}  // namespace tutti::storage
