#include "runtime/device/cpu/bf16/amx.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "base/machine/instruction_set.h"

namespace tutti::device::cpu {
namespace {

// What LDTILECFG reads.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(Configuration) == 64);

// Linux gives a process the state of tiles when it asks for it (Documentation/arch/x86/xstate.rst).
bool IsAllowed() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::atomic<bool> left_alone = false;

}  // namespace

bool HasAmx() {
  static const bool has = base::MayUseAmx() && IsAllowed();
  return has && !left_alone.load(std::memory_order_relaxed);
}

void LeaveAmxAlone(bool alone) { left_alone.store(alone, std::memory_order_relaxed); }

void AmxTiles::SetUp(int64_t rows) {
  Configuration wanted;
  for (int tile = 0; tile < 8; ++tile) {
    wanted.row_bytes[tile] = kTileBytes;
    wanted.rows[tile] = static_cast<uint8_t>(tile < 6 ? rows : kTileRows);
  }
  __asm__ volatile("ldtilecfg %0" ::"m"(wanted));
  rows_ = rows;
}

AmxTiles::~AmxTiles() {
  if (rows_ != 0) __asm__ volatile("tilerelease");
}

}  // namespace tutti::device::cpu
#else

namespace tutti::device::cpu {

bool HasAmx() { return false; }
void LeaveAmxAlone(bool) {}
void AmxTiles::SetUp(int64_t) {}
AmxTiles::~AmxTiles() = default;

}  // namespace tutti::device::cpu
#endif
