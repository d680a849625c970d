#include "platform/health/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::health {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kTwo[] =
    "0, GPU-aaaa, 00000000:3B:00.0, 0\n"
    "1, GPU-bbbb, 00000000:86:00.0, [N/A]\n";

TEST(GpuWatchTest, ReadsWhatNvidiaSmiSays) {
  const auto gpus = ParseGpus(kTwo);
  ASSERT_TRUE(gpus.ok()) << gpus.status();
  ASSERT_THAT(*gpus, SizeIs(2));
  EXPECT_EQ((*gpus)[0].bus, "0000:3b:00");
  EXPECT_EQ((*gpus)[0].uncorrected_errors, 0);
  EXPECT_EQ((*gpus)[1].uuid, "GPU-bbbb");
  EXPECT_FALSE((*gpus)[1].uncorrected_errors.has_value());
  EXPECT_TRUE(ParseGpus("")->empty());
  EXPECT_TRUE(absl::IsInvalidArgument(ParseGpus("No devices were found\n").status()));
  EXPECT_THAT(GpusFromText(ToText(*gpus)), SizeIs(2));
  EXPECT_EQ(GpusFromText(ToText(*gpus))[1].bus, "0000:86:00");
}

TEST(GpuWatchTest, OneThatIsGoneAndOneWithErrorsAreFaults) {
  const std::vector<Gpu> before = *ParseGpus(kTwo);
  EXPECT_THAT(FaultsOf(before, before, {}), IsEmpty());
  const auto gone = FaultsOf(before, *ParseGpus("0, GPU-aaaa, 00000000:3B:00.0, 7\n"), {});
  ASSERT_THAT(gone, SizeIs(2));
  EXPECT_EQ(gone[0].index, "0");
  EXPECT_EQ(gone[0].what, "has 7 errors of memory that ECC could not correct");
  EXPECT_EQ(gone[1].uuid, "GPU-bbbb");
  EXPECT_EQ(gone[1].what, "is gone");
  EXPECT_THAT(FaultsOf({}, before, {}), IsEmpty());  // new ones are welcome
}

TEST(GpuWatchTest, XidsOfTheDeviceCountAndThoseOfAProgramDoNot) {
  const std::vector<Xid> xids = DeviceXids(
      "6,100,200,-;NVRM: Xid (PCI:0000:3b:00): 13, pid=77, Graphics Exception\n"
      "6,101,201,-;NVRM: Xid (PCI:0000:86:00): 79, pid='<unknown>', GPU has fallen off the bus.\n"
      "6,102,202,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=77, Ch 8, MMU Fault\n"
      "NVRM: Xid (PCI:broken\n",
      absl::ZeroDuration());
  ASSERT_THAT(xids, SizeIs(1));
  const std::vector<Gpu> before = *ParseGpus(kTwo);
  const auto now = FaultsOf(before, before, xids);
  ASSERT_THAT(now, SizeIs(1));
  EXPECT_EQ(now[0].index, "1");
  EXPECT_EQ(now[0].what, "had XID 79: it has left the bus");
  const auto gone = FaultsOf(before, {before[0]}, xids);
  ASSERT_THAT(gone, SizeIs(1));
  EXPECT_EQ(gone[0].what, "is gone: it had XID 79: it has left the bus");
}

TEST(GpuWatchTest, AnXidThatIsOldDoesNotCount) {
  constexpr char kLog[] =
      "6,101,1000000,-;NVRM: Xid (PCI:0000:86:00): 48, pid=1, DBE\n SUBSYSTEM=pci\n"
      "4,102,5000000,c,caller=T1;NVRM: Xid (PCI:0000:86:00): 79, pid=1, fallen off the bus\n"
      "6,103,6000000,-;another line; of 1,2,9000000,-;\n";
  EXPECT_THAT(DeviceXids(kLog, -absl::InfiniteDuration()), SizeIs(2));
  EXPECT_THAT(DeviceXids(kLog, absl::Seconds(0.9)), SizeIs(2));
  const std::vector<Xid> young = DeviceXids(kLog, absl::Seconds(1));
  ASSERT_THAT(young, SizeIs(1));
  EXPECT_EQ(young[0].code, 79);
  EXPECT_THAT(DeviceXids(kLog, absl::Seconds(5)), IsEmpty());
  EXPECT_EQ(LastTimeOf(kLog), absl::Seconds(6));
  EXPECT_EQ(LastTimeOf("NVRM: no time\n"), -absl::InfiniteDuration());
  EXPECT_THAT(DeviceXids("NVRM: Xid (PCI:0000:86:00): 79, x\n", absl::Hours(1)), SizeIs(1))
      << "nobody knows how old it is";
}

}  // namespace
}  // namespace tutti::health
