// Computes CRC-64/NVME, the checksum that S3's own clients give to what they upload: by the
// processor's carry-less multiplication where it has one. Pure function; thread-safe.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tutti::storage {

// `before`: of the bytes before these, of which the result is one.
uint64_t Crc64Nvme(absl::string_view bytes, uint64_t before = 0);

// Computes the same by tables alone, on any processor.
uint64_t Crc64NvmeByTables(absl::string_view bytes, uint64_t before = 0);

}  // namespace tutti::storage
