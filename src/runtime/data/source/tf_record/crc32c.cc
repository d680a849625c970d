#include "runtime/data/source/tf_record/crc32c.h"

#include <array>
#include <cstring>

namespace tutti::data {
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
[[gnu::target("sse4.2")]] uint32_t ByInstruction(uint32_t crc, const char* at, size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  return ByTable(static_cast<uint32_t>(wide), at, size);
}
#endif

}  // namespace

uint32_t Crc32c(absl::string_view bytes) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~ByInstruction(~uint32_t{0}, bytes.data(), bytes.size());
#endif
  return ~ByTable(~uint32_t{0}, bytes.data(), bytes.size());
}

}  // namespace tutti::data
