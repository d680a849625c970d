#include "runtime/device/device.h"

#include <gtest/gtest.h>

namespace tutti::device {
namespace {

TEST(Device, TheCpuIsAlwaysThere) { EXPECT_EQ(*Open("cpu"), torch::Device(torch::kCPU)); }

TEST(Device, AnUnknownOneIsSaidWithThoseThereAre) {
  EXPECT_EQ(Open("tpu").status(),
            absl::InvalidArgumentError("no device \"tpu\"; there are auto, cpu and cuda"));
}

TEST(Device, AGpuIsOpenedOrItIsSaidWhyNot) {
  const auto gpu = Open("cuda");
  if (gpu.ok()) {
    EXPECT_TRUE(gpu->is_cuda());
    EXPECT_EQ(torch::ones({2}, *gpu).sum().item<float>(), 2);
    EXPECT_EQ(*Open("auto"), *gpu);
    return;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(gpu.status())) << gpu.status();
  EXPECT_NE(gpu.status().message().find("there is no GPU to compute on: "), absl::string_view::npos)
      << gpu.status();
  EXPECT_EQ(*Open("auto"), torch::Device(torch::kCPU));
  EXPECT_EQ(Kernels(), nullptr);
}

}  // namespace
}  // namespace tutti::device
