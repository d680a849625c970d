// Computes CRC-32C (Castagnoli, RFC 3720 appendix B.4), by the processor's instruction where it has
// one.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tutti::base {

// `before`: of the bytes before these, of which the result is one.
uint32_t Crc32c(absl::string_view bytes, uint32_t before = 0);

}  // namespace tutti::base
