#include "base/gpus/usable_gpus.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
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

// As on boards whose first device file is not that of the first place on the bus.
TEST(UsableGpus, AreNamedForContainersByTheirPlaceOnTheBusAndNotByTheirDeviceFiles) {
  const TemporaryDirectory driver;
  const auto add = [&](const char* bus, const char* uuid, int device) {
    ASSERT_TRUE(MakeDirectories(driver.path() / bus).ok());
    const std::string text =
        absl::StrCat("Model: \t\t NVIDIA X\nGPU UUID: \t ", uuid, "\nBus Location: \t ", bus,
                     "\nDevice Minor: \t ", device, "\nGPU Excluded:\t No\n");
    ASSERT_TRUE(WriteFileAtomic(driver.path() / bus / "information", text).ok());
  };
  add("0000:b3:00.0", "GPU-c", 0);
  add("0000:17:00.0", "GPU-a", 2);
  add("0000:65:00.0", "GPU-b", 1);
  const std::vector<Gpu> gpus = GpusByBus(driver.path());
  const std::string by_place = "devices:\n- name: \"0\"\n- name: \"1\"\n- name: \"2\"\n";
  EXPECT_THAT(CdiNames({0, 1, 2}, gpus, by_place), ElementsAre("0", "1", "2"));
  EXPECT_THAT(CdiNames({2}, gpus, by_place), ElementsAre("0"));
  EXPECT_THAT(CdiNames({0, 2}, gpus, by_place), ElementsAre("0", "2"));
  EXPECT_THAT(CdiNames({0, 2}, gpus, by_place + "- name: GPU-a\n- name: GPU-b\n- name: GPU-c\n"),
              ElementsAre("GPU-a", "GPU-c"));
  EXPECT_THAT(CdiNames({0, 5}, gpus, by_place), ElementsAre("0", "5")) << "it knows another less";
  EXPECT_THAT(CdiNames({3}, GpusByBus(driver.path() / "none"), ""), ElementsAre("3"));
}

}  // namespace
}  // namespace tutti::base
