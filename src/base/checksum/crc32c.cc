#include "base/checksum/crc32c.h"

#include <array>
#include <cstring>

#if defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace tutti::base {
namespace {

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78 : 0);
    table[i] = value;
  }
  return table;
}

uint32_t ByTable(uint32_t crc, const char* at, size_t size) {
  static constexpr std::array<uint32_t, 256> kTable = MakeTable();
  for (const char* end = at + size; at != end; ++at) {
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(*at)) & 0xFF];
  }
  return crc;
}

#if defined(__x86_64__)
#define TUTTI_TARGET_OF_CRC32C [[gnu::target("sse4.2")]]
bool HasInstruction() { return __builtin_cpu_supports("sse4.2") != 0; }
TUTTI_TARGET_OF_CRC32C inline uint64_t TakeIn(uint64_t crc, uint64_t word) {
  return __builtin_ia32_crc32di(crc, word);
}
#elif defined(__aarch64__)
#define TUTTI_TARGET_OF_CRC32C [[gnu::target("+crc")]]
bool HasInstruction() { return (::getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
TUTTI_TARGET_OF_CRC32C inline uint64_t TakeIn(uint64_t crc, uint64_t word) {
  return __crc32cd(static_cast<uint32_t>(crc), word);
}
#endif

#if defined(TUTTI_TARGET_OF_CRC32C)
TUTTI_TARGET_OF_CRC32C uint32_t ByInstruction(uint32_t crc, const char* at, size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    wide = TakeIn(wide, word);
  }
  return ByTable(static_cast<uint32_t>(wide), at, size);
}
#endif

}  // namespace

uint32_t Crc32c(absl::string_view bytes, uint32_t before) {
#if defined(TUTTI_TARGET_OF_CRC32C)
  static const bool has_instruction = HasInstruction();
  if (has_instruction) return ~ByInstruction(~before, bytes.data(), bytes.size());
#endif
  return ~ByTable(~before, bytes.data(), bytes.size());
}

}  // namespace tutti::base
