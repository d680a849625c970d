// The checksum that TFRecord files hold.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/checksum/crc32c.h"

namespace tutti::data {

// The checksum of data that hold checksums would be weak, so it is turned and shifted.
inline uint32_t MaskedCrc32c(absl::string_view bytes) {
  const uint32_t crc = base::Crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

}  // namespace tutti::data
