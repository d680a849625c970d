#include "platform/storage/arrow/arrow_errors.h"

#include <arrow/util/io_util.h>

#include <cerrno>

#include "platform/storage/objects/error_text.h"

namespace tutti::storage {

absl::Status StatusFrom(const arrow::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int error_number = arrow::internal::ErrnoFromStatus(status);
  if (error_number == ENOENT) return absl::NotFoundError("nothing is at this path");
  if (error_number != 0) return absl::ErrnoToStatus(error_number, "the file system refuses");
  return StatusFromText(status.ToString());
}

}  // namespace tutti::storage
