// Computes a 64-bit hash of the states of a model.
#pragma once

#include <cstdint>
#include <cstring>

namespace tutti::comm {

inline uint64_t Mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccd;
  return hash ^ hash >> 32;
}

template <typename Bytes>
uint64_t MixBytes(uint64_t hash, const Bytes& bytes) {
  static_assert(sizeof(Bytes) % sizeof(uint64_t) == 0);
  for (size_t at = 0; at < sizeof(Bytes); at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, reinterpret_cast<const char*>(&bytes) + at, sizeof(word));
    hash = Mix(hash, word);
  }
  return hash;
}

}  // namespace tutti::comm
