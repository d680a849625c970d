// Computes CRC-32C (Castagnoli, RFC 3720 appendix B.4), by the processor's instruction where it has
// one.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tutti::data {

uint32_t Crc32c(absl::string_view bytes);

// Returns what TFRecord files hold: the checksum of data that hold checksums would be weak, so it
// is turned and shifted.
inline uint32_t MaskedCrc32c(absl::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8;
}

}  // namespace tutti::data
