#include "base/machine/usable_gpus.h"

#include <gmock/gmock.h>

namespace tutti::base {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(UsableGpus, AreThoseThatTheVariableNames) {
  EXPECT_THAT(UsableGpus({{"CUDA_VISIBLE_DEVICES", "2,GPU-1a"}}), ElementsAre("2", "GPU-1a"));
  EXPECT_THAT(UsableGpus({{"CUDA_VISIBLE_DEVICES", ""}}), IsEmpty());
}

}  // namespace
}  // namespace tutti::base
