// CopyToSlot copies bytes into memory that other ranks have read and will read again.
#pragma once

#include <cstddef>
#include <span>

#include "base/machine/copy_bytes.h"

namespace tutti::comm {

// Lines that lie in another processor's cache are fetched before a plain store changes them, which
// between distant cores costs five times what the copy does. The processor's own copy instruction
// knows that it will write whole lines and only invalidates them (measured: docs/decisions/010),
// but it is no choice where it is slow for other reasons (copy_bytes.h).
inline void CopyToSlot(std::byte* slot, std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  constexpr size_t kWorthIt = 512;
  if (bytes.size() >= kWorthIt && !base::CopyInstructionMayBeSlow(slot, bytes.data())) {
    const std::byte* from = bytes.data();
    size_t count = bytes.size();
    asm volatile("rep movsb" : "+D"(slot), "+S"(from), "+c"(count) : : "memory");
    return;
  }
#endif
  base::CopyBytes(slot, bytes.data(), bytes.size());
}

}  // namespace tutti::comm
