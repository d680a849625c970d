// Keeps the memory of large tensors for the next tensor of that size. The C library returns blocks
// of many megabytes to the system when they are freed, and a step's activations come back page by
// page, each filled with zeros first. Kept, they are mapped once, in pages of 2 MiB where the
// system has them, and a step of training asks the system for nothing.
//
//   allocate  | kept block that fits: at most a fourth too large | else a new one from the system |
//   free      | kept |
//
// All blocks together take at most half as much again as tensors ever held at once: past that, what
// is kept and does not fit goes back, the largest first. libtorch's profiler is told of what
// tensors asked for and gave back, as of small blocks. Thread-safe.
#pragma once

#include <cstddef>

namespace tutti::device {

// Has libtorch's CPU tensors of kLargeBlock bytes and more lie in such memory from now on; smaller
// ones stay where they were. May be called more than once.
void KeepLargeBlocks();

// Gives back what is kept, and counts what tensors ever held anew: for what needed much once and
// will not again.
void ReturnKeptBlocks();

constexpr size_t kLargeBlock = size_t{1} << 20;

// Counts the large blocks: the bytes that tensors hold, the most that they ever held, the bytes
// that are kept for other tensors, and how often the system was asked for a block.
struct KeptMemory {
  size_t used_bytes = 0, most_used_bytes = 0, kept_bytes = 0, mappings = 0;
};
KeptMemory MeasureKeptMemory();

}  // namespace tutti::device
