// Walks over the records of a TFRecord file that lies in memory. A record is
//
//   length (8 bytes)  masked CRC-32C of it (4)  data (length bytes)  masked CRC-32C of them (4)
//
// in little-endian order. Every length is checked against the file, so hostile bytes give an error
// and never a read outside of it. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

struct TfRecord {
  uint64_t offset = 0;  // of the record in the file
  absl::string_view data;
  uint32_t checksum = 0;  // as stored
};

class TfRecordReader {
 public:
  // `file` must outlive the reader and the records.
  explicit TfRecordReader(absl::string_view file) : file_(file) {}

  // Returns the next record; nothing at the file's end. The data are not read: CheckData does that.
  // Errors are DataLoss and give the offset: a length whose checksum is wrong, a record cut short.
  absl::StatusOr<std::optional<TfRecord>> Next();

 private:
  absl::string_view file_;
  uint64_t position_ = 0;
};

// Checks the data; DataLoss if the data are not what was written.
absl::Status CheckData(const TfRecord& record);

}  // namespace tutti::data
