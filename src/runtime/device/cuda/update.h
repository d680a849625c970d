// Defines what the optimizers' kernels share. Pointers are into memory of the GPU. No torch here.
#pragma once

#include <cstdint>

namespace tutti::device {

// device/kernels/bucket_chunks.h as kernels have it.
struct ChunkTable {
  const int64_t* begins;
  const int* ranges;
  const int* firsts;
  const float* decays;
  int chunks, count;  // count: of ranges
};

// What the kernels of an update read and write; all of it is flat memory.
struct Update {
  float* values;
  const float* gradients;
  void* copy;                    // the values in bf16; may be null
  const float* found_nonfinite;  // nothing is changed unless it is 0. May be null
  ChunkTable chunks;
  double learning_rate, weight_decay;
};

// Returns the doubles that norms need: two sums of squares a chunk, then a ratio a range.
inline int64_t ScratchDoubles(const ChunkTable& chunks) { return 2 * chunks.chunks + chunks.count; }

}  // namespace tutti::device
