#include "runtime/device/precision/gpu.h"

#include <gtest/gtest.h>

namespace tutti::device {
namespace {

TEST(GpuOf, TellsWhatTheDriverSays) {
  const auto gpu = GpuOf(1, TUTTI_FAKE_GPU);
  ASSERT_TRUE(gpu.has_value());
  EXPECT_EQ(gpu->name, "Fake GPU 1");
  EXPECT_EQ(gpu->major, 7);
  EXPECT_EQ(gpu->minor, 5);
  EXPECT_EQ(gpu->memory, 16.0 * (1 << 30));
}

TEST(GpuOf, IsNoneWhereThereIsNoDriverOrNoSuchGpu) {
  EXPECT_EQ(GpuOf(0, "libnobody.so").has_value(), false);
  EXPECT_EQ(GpuOf(7, TUTTI_FAKE_GPU).has_value(), false);
}

}  // namespace
}  // namespace tutti::device
