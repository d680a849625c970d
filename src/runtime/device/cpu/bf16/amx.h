// Multiplies tiles by AMX: 16 rows of 64 bytes each in eight registers, and products of tiles of
// bf16 summed in fp32 (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1,
// chapter 18).
//
// Here registers 0 to 3 hold sums, two by two; 4 and 5 the left factors, a row for each of their
// rows; 6 and 7 the right ones, a row for each pair of theirs.
#pragma once

#include <cstdint>

namespace tutti::device::cpu {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBytes = 64;              // of a row
constexpr int64_t kTileDepth = kTileBytes / 2;  // bf16 values of a left factor's row

// Returns whether this process may use it (base/machine/instruction_set.h) and the kernel lets it;
// asks the first time.
bool HasAmx();
// Lets tests see what is done without AMX: from now on HasAmx() is false, or what it was before.
void LeaveAmxAlone(bool alone);

// The registers of this thread, from the first Use on until it is destroyed. Whoever else computes
// with tiles in this thread (oneDNN) sets them up anew.
class AmxTiles {
 public:
  AmxTiles() = default;
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles();
  // Sets the registers up for `rows` of sums and left factors, at most 16. The registers are zeros
  // if that changes anything.
  void Use(int64_t rows) {
    if (rows != rows_) SetUp(rows);
  }

 private:
  void SetUp(int64_t rows);

  int64_t rows_ = 0;
};

}  // namespace tutti::device::cpu
