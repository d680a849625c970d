// CopyBytes copies as memcpy does, and is not slow where the processor's copy instruction is.
// AMD's Zen 3 and Zen 4 take 15 times as long for `rep movsb` where the destination lies 1 to 31
// bytes behind the source, whole pages aside: 3 GB/s (measured: docs/decisions/010; the C library's
// memcpy takes that instruction from 2 to 4 KiB on, and glibc's bug 30994 tells of it). Memory from
// malloc begins 16 bytes behind a page's beginning, mapped memory at it, so that is met often.
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tutti::base {

// Returns whether `rep movsb` from `from` to `to` is slow on some processors.
inline bool CopyInstructionMayBeSlow(const void* to, const void* from) {
  constexpr uintptr_t kPage = 4096, kNearest = 1, kFarthest = 31;
  const uintptr_t distance =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPage;
  return distance >= kNearest && distance <= kFarthest;
}

// Copies by loads and stores of vectors. The ranges do not overlap.
void CopyByVectors(void* to, const void* from, size_t bytes);

// The ranges do not overlap; with 0 bytes neither pointer is looked at.
inline void CopyBytes(void* to, const void* from, size_t bytes) {
  constexpr size_t kWorthALook = 1024;  // below, memcpy takes vectors itself
  if (bytes == 0) return;
  if (bytes >= kWorthALook && CopyInstructionMayBeSlow(to, from)) {
    CopyByVectors(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace tutti::base
