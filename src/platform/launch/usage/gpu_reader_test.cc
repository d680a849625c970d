// With a stand-in for the library (fake_nvml.cpp).
// Covers: base/gpus/nvml.cc.
#include "platform/launch/usage/gpu_reader.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "base/file.h"

namespace tutti::launch {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr float kMebibyte = 1 << 20;

class GpuReaderTest : public ::testing::Test {
 protected:
  GpuReaderTest() { ::setenv("TUTTI_FAKE_NVML", file_.c_str(), 1); }
  ~GpuReaderTest() override {
    ::unsetenv("TUTTI_FAKE_NVML");
    ::unsetenv("TUTTI_NVML_LIBRARY");
    EXPECT_EQ(Begun(), 0) << "every nvmlInit has its nvmlShutdown";
  }
  void Have(const std::string& devices) const {
    ASSERT_TRUE(base::WriteFileAtomic(file_, devices).ok());
  }
  static std::vector<spec::GpuUsage> Read(const std::vector<std::string>& names) {
    return GpuReader(names, TUTTI_FAKE_NVML_LIBRARY).Read();
  }
  int Begun() const { return reinterpret_cast<int (*)()>(::dlsym(fake_, "fake_nvml_begun"))(); }

  const base::TemporaryDirectory folder_;
  const std::string file_ = folder_.path() / "devices";
  void* const fake_ = ::dlopen(TUTTI_FAKE_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
};

// Two GPUs and an instance of a third.
constexpr char kTwoAndAnInstance[] =
    "uuid=GPU-8a5c-01 busy=75 used=3072 total=81920 watts=312.5 celsius=61\n"
    "uuid=GPU-8a5c-02 busy=10 used=1024 total=81920 watts=70 celsius=40\n"
    "uuid=MIG-77 mig=1 used=512 total=9984\n";

TEST_F(GpuReaderTest, SaysWhatEachGpuDoes) {
  Have(kTwoAndAnInstance);
  const GpuReader reader({"1", "0"}, TUTTI_FAKE_NVML_LIBRARY);
  auto gpus = reader.Read();
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].gpu, "1");
  EXPECT_EQ(gpus[0].use, 0.1F);
  EXPECT_EQ(gpus[1].gpu, "0");
  EXPECT_EQ(gpus[1].use, 0.75F);
  EXPECT_EQ(gpus[1].memory, 3072 * kMebibyte);
  EXPECT_EQ(gpus[1].memory_total, 81920 * kMebibyte);
  EXPECT_EQ(gpus[1].power, 312.5F);
  EXPECT_EQ(gpus[1].temperature, 61);
  Have("busy=20\nbusy=30\n");
  gpus = reader.Read();
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].use, 0.3F);
}

TEST_F(GpuReaderTest, FindsGpusAndInstancesByTheirUuids) {
  Have(kTwoAndAnInstance);
  const auto gpus = Read({"GPU-8a5c-02", "MIG-77"});
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].use, 0.1F);
  EXPECT_EQ(gpus[1].gpu, "MIG-77");
  EXPECT_EQ(gpus[1].memory, 512 * kMebibyte);
  EXPECT_TRUE(std::isnan(gpus[1].use)) << "an instance has none";
}

TEST_F(GpuReaderTest, FindsAGpuByTheBeginningOfItsUuid) {
  Have("uuid=GPU-8a5c busy=1\nuuid=GPU-9b00 busy=2\nuuid=GPU-9b11 busy=3\n");
  ASSERT_THAT(Read({"GPU-8"}), SizeIs(1));
  EXPECT_EQ(Read({"GPU-8"})[0].use, 0.01F);
  EXPECT_THAT(Read({"GPU-9"}), IsEmpty()) << "two begin so";
  EXPECT_EQ(Read({"GPU-9b1"}).at(0).use, 0.03F);
}

TEST_F(GpuReaderTest, CountsTheGpusThatTheProcessMayUse) {
  Have("busy=1 denied=1\nbusy=2\nbusy=3 denied=1\nbusy=4\n");
  const auto gpus = Read({"0", "1"});
  ASSERT_THAT(gpus, SizeIs(2));
  EXPECT_EQ(gpus[0].use, 0.02F);
  EXPECT_EQ(gpus[1].use, 0.04F);
}

TEST_F(GpuReaderTest, KnowsNothingOfAGpuThatDoesNotAnswerAndAllOfTheOthers) {
  Have("busy=1\nlost=1 busy=2\nbusy=3\n");
  const auto gpus = Read({"0", "1", "2"});
  ASSERT_THAT(gpus, SizeIs(3));
  EXPECT_EQ(gpus[0].use, 0.01F);
  EXPECT_TRUE(std::isnan(gpus[1].use));
  EXPECT_EQ(gpus[2].use, 0.03F);
}

TEST_F(GpuReaderTest, HasNothingBehindANameThatIsNone) {
  Have(kTwoAndAnInstance);
  EXPECT_THAT(Read({"1", "-1", "0"}), SizeIs(1));
  EXPECT_THAT(Read({"2", "0"}), IsEmpty());
  EXPECT_THAT(Read({"NoDevFiles"}), IsEmpty());
  EXPECT_THAT(Read({"GPU-ff", "0"}), IsEmpty());
}

TEST_F(GpuReaderTest, SaysTheOtherValuesWhereOneIsNotSupported) {
  for (const char* const without : {"busy", "used", "watts", "celsius"}) {
    std::string devices = "busy=50 used=64 total=128 watts=9 celsius=30\n";
    devices.replace(devices.find(without), std::string(without).size(), "other");
    Have(devices);
    const auto gpus = Read({"0"});
    ASSERT_THAT(gpus, SizeIs(1)) << without;
    const auto is = [&](float value, const char* name, float known) {
      EXPECT_EQ(std::isnan(value), name == std::string(without)) << name << " of " << without;
      if (!std::isnan(value)) {
        EXPECT_EQ(value, known) << name;
      }
    };
    is(gpus[0].use, "busy", 0.5F);
    is(gpus[0].memory, "used", 64 * kMebibyte);
    is(gpus[0].memory_total, "used", 128 * kMebibyte);
    is(gpus[0].power, "watts", 9);
    is(gpus[0].temperature, "celsius", 30);
  }
}

TEST_F(GpuReaderTest, SaysTheOtherValuesWhereTheLibraryLacksAFunction) {
  Have(kTwoAndAnInstance);
  const auto gpus = GpuReader({"0"}, TUTTI_FAKE_OLD_NVML_LIBRARY).Read();
  ASSERT_THAT(gpus, SizeIs(1));
  EXPECT_EQ(gpus[0].power, 312.5F);
  EXPECT_TRUE(std::isnan(gpus[0].temperature));
}

TEST_F(GpuReaderTest, SaysNothingWithoutALibraryOrADriver) {
  Have(kTwoAndAnInstance);
  EXPECT_THAT(GpuReader({"0"}, "libnone.so").Read(), IsEmpty());
  EXPECT_THAT(GpuReader({"0"}, "libc.so.6").Read(), IsEmpty()) << "it has no such functions";
  ::unsetenv("TUTTI_FAKE_NVML");
  EXPECT_THAT(Read({"0"}), IsEmpty()) << "nvmlInit fails";
}

TEST_F(GpuReaderTest, OpensTheLibraryThatTheEnvironmentNamesAndNoneWithoutAGpu) {
  Have(kTwoAndAnInstance);
  ::setenv("TUTTI_NVML_LIBRARY", TUTTI_FAKE_NVML_LIBRARY, 1);
  const GpuReader none({});
  EXPECT_EQ(Begun(), 0);
  const GpuReader one({"0"});
  EXPECT_EQ(Begun(), 1);
  EXPECT_THAT(one.Read(), SizeIs(1));
}

}  // namespace
}  // namespace tutti::launch
