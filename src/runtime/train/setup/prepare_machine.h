// Sets how libtorch uses this machine: for speed, and for the same bits at every run.
#pragma once

#include <cstdint>

namespace tutti::train {

// `threads` per rank; 0: the cores that this process may run on, shared by the ranks of the node
// (LOCAL_WORLD_SIZE), but at most OMP_NUM_THREADS, by which a launcher tells of a smaller share:
// what Slurm gives a job need not be what it holds it to. Call before the first tensor is computed.
//
// A GPU gets the algorithms that are fastest there: its runs are the same up to rounding.
void PrepareMachine(int64_t threads, bool gpu);

}  // namespace tutti::train
