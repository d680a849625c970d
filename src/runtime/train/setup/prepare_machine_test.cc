#include "runtime/train/setup/prepare_machine.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <torch/types.h>

namespace tutti::train {
namespace {

TEST(PrepareMachine, TakesNoMoreThreadsThanItsLauncherSaid) {
  const int before = at::get_num_threads();
  ::unsetenv("LOCAL_WORLD_SIZE");
  ::unsetenv("OMP_NUM_THREADS");
  PrepareMachine(0, /*gpu=*/false);
  const int all = at::get_num_threads();
  ::setenv("OMP_NUM_THREADS", "1", 1);
  PrepareMachine(0, /*gpu=*/false);
  EXPECT_EQ(at::get_num_threads(), 1);
  for (const char* no_limit : {"100000", "0", "4,2", ""}) {
    ::setenv("OMP_NUM_THREADS", no_limit, 1);
    PrepareMachine(0, /*gpu=*/false);
    EXPECT_EQ(at::get_num_threads(), all) << no_limit;
  }
  ::setenv("OMP_NUM_THREADS", "1", 1);
  PrepareMachine(3, /*gpu=*/false);
  EXPECT_EQ(at::get_num_threads(), 3) << "--threads says it";
  ::unsetenv("OMP_NUM_THREADS");
  ::setenv("LOCAL_WORLD_SIZE", "100000", 1);
  PrepareMachine(0, /*gpu=*/false);
  EXPECT_EQ(at::get_num_threads(), 1);
  ::unsetenv("LOCAL_WORLD_SIZE");
  at::set_num_threads(before);
}

}  // namespace
}  // namespace tutti::train
