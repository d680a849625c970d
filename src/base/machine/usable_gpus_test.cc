#include "base/machine/usable_gpus.h"

#include <gmock/gmock.h>

#include "base/file.h"

namespace tutti::base {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(UsableGpus, AreThoseThatTheVariableNames) {
  EXPECT_THAT(UsableGpus({{"CUDA_VISIBLE_DEVICES", "2,GPU-1a"}}), ElementsAre("2", "GPU-1a"));
  EXPECT_THAT(UsableGpus({{"CUDA_VISIBLE_DEVICES", ""}}), IsEmpty());
}

TEST(UsableGpus, AreTheDevicesThatTheProcessMayOpen) {
  const TemporaryDirectory devices;
  for (const char* name : {"nvidia0", "nvidia3", "nvidia10", "nvidia", "nvidiactl", "nvidia-uvm",
                           "nvidia07", "nvidia4x"}) {
    ASSERT_TRUE(WriteFileAtomic(devices.path() / name, "").ok());
  }
  EXPECT_THAT(GpuDevices(devices.path()), ElementsAre(0, 3, 10));
  const auto but_the_first = [](const std::filesystem::path& file) {
    return file.filename() != "nvidia0";
  };
  EXPECT_THAT(GpuDevices(devices.path(), but_the_first), ElementsAre(3, 10));
  EXPECT_THAT(GpuDevices(devices.path() / "none"), IsEmpty());
}

}  // namespace
}  // namespace tutti::base
