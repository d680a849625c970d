#include "runtime/data/sampling/random_stream.h"

namespace tutti::data {

RandomStream::RandomStream(uint64_t seed, Purpose purpose, int64_t epoch, int64_t sample)
    : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
      // Word 0 counts the blocks of this stream; the others name it.
      counter_{0,
               static_cast<uint32_t>(purpose) << 24 |
                   (static_cast<uint32_t>(static_cast<uint64_t>(sample) >> 32) & 0xFFFFFF),
               static_cast<uint32_t>(sample), static_cast<uint32_t>(epoch)} {}

uint32_t RandomStream::Next32() {
  if (used_ == 4) {
    block_ = Philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

uint64_t RandomStream::Next64() {
  const uint64_t low = Next32();
  return uint64_t{Next32()} << 32 | low;
}

uint64_t RandomStream::Below(uint64_t n) {
  unsigned __int128 product = static_cast<unsigned __int128>(Next64()) * n;
  if (static_cast<uint64_t>(product) < n) {
    const uint64_t threshold =
        -n % n;  // 2^64 mod n: this many low products would be over-represented
    while (static_cast<uint64_t>(product) < threshold) {
      product = static_cast<unsigned __int128>(Next64()) * n;
    }
  }
  return static_cast<uint64_t>(product >> 64);
}

double RandomStream::Uniform(double low, double high) {
  return low + (high - low) * (static_cast<double>(Next64() >> 11) * 0x1p-53);
}

}  // namespace tutti::data
