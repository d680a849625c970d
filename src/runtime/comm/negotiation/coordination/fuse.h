// Fuse decides which of the tensors that are ready go together: one collective over many small
// tensors costs one latency. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/comm/negotiation/coordination/tensor_table.h"

namespace tutti::comm {

// A tensor of this size or more is run by itself, where it lies: packing would cost more than the
// latency that it saves.
inline constexpr size_t kWorthAlone = 1 << 20;

// Returns batches of tensors that may be run as one, of at most `fusion_bytes` if they are more
// than one; in the order of `ready`, save that a tensor goes with the first earlier one that it
// fuses with.
std::vector<std::vector<Tensor*>> Fuse(const std::vector<Tensor*>& ready, size_t fusion_bytes);

}  // namespace tutti::comm
