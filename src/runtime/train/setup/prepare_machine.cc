#include "runtime/train/setup/prepare_machine.h"

#include <ATen/Parallel.h>
#include <sched.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "runtime/device/cpu/convolution_ops.h"
#include "runtime/device/cpu/kept_memory.h"

namespace tutti::train {
namespace {

// `otherwise` where the variable is no positive number.
int64_t PositiveVariable(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  int64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) && value > 0 ? value : otherwise;
}

int64_t CoresPerRank() {
  cpu_set_t cores;
  int64_t count = 1;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0) count = CPU_COUNT(&cores);
  const int64_t share = std::max<int64_t>(1, count / PositiveVariable("LOCAL_WORLD_SIZE", 1));
  return std::min(share, PositiveVariable("OMP_NUM_THREADS", share));
}

}  // namespace

void PrepareMachine(int64_t threads, bool gpu) {
  at::set_num_threads(static_cast<int>(threads > 0 ? threads : CoresPerRank()));
  at::globalContext().setDeterministicMkldnn(true);
  at::globalContext().setDeterministicAlgorithms(!gpu, /*warn_only=*/true);
  at::globalContext().setBenchmarkCuDNN(gpu);
  // That also fills every new tensor with NaN, so that reading it before it is written shows: a
  // twentieth of a step, for what the tests of equal bytes would show too.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  if (!gpu) {
    device::KeepLargeBlocks();
    device::UseOwnConvolutions();
  }
  // Gradients that have all but vanished cost a hundred times more as denormals.
  at::globalContext().setFlushDenormal(true);
}

}  // namespace tutti::train
