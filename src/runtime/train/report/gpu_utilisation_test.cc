// With a stand-in for the libraries (fake_gpu.cpp).
// Covers: runtime/device/pci_address.cc, base/gpus/nvml.cc.
#include "runtime/train/report/gpu_utilisation.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "runtime/train/report/run_report.h"

namespace tutti::train {
namespace {

constexpr double kGiB = 1 << 30;

class Gpu : public testing::Test {
 protected:
  ~Gpu() override {
    EXPECT_EQ(Began(), 0) << "every nvmlInit has its nvmlShutdown";
    Fail("");
  }
  void Fail(const char* function) const {
    reinterpret_cast<void (*)(const char*)>(::dlsym(fake_, "fake_gpu_fail"))(function);
  }
  int Began() const { return reinterpret_cast<int (*)()>(::dlsym(fake_, "fake_gpu_began"))(); }

  void* const fake_ = ::dlopen(TUTTI_FAKE_GPU, RTLD_NOW | RTLD_LOCAL);
  const GpuLibraries libraries_ = {.cuda = TUTTI_FAKE_GPU, .nvml = TUTTI_FAKE_GPU};
};

TEST_F(Gpu, IsTheOneThatCudaMeans) {
  const GpuUse first = GpuUtilisation(0, libraries_).Read();
  EXPECT_EQ(first.busy, 0.75);
  EXPECT_EQ(first.memory, 3 * kGiB);
  const GpuUse second = GpuUtilisation(1, libraries_).Read();
  EXPECT_EQ(second.busy, 0.1);
  EXPECT_EQ(second.memory, kGiB);
}

TEST_F(Gpu, SaysNothingWithoutALibraryOrAnotherGpu) {
  for (const GpuLibraries& libraries :
       {GpuLibraries{.cuda = "libnone.so", .nvml = TUTTI_FAKE_GPU},
        GpuLibraries{.cuda = TUTTI_FAKE_GPU, .nvml = "libnone.so"},
        GpuLibraries{.cuda = "libc.so.6", .nvml = TUTTI_FAKE_GPU},
        GpuLibraries{.cuda = TUTTI_FAKE_GPU, .nvml = "libc.so.6"}}) {
    const GpuUse use = GpuUtilisation(0, libraries).Read();
    EXPECT_FALSE(use.busy || use.memory) << libraries.cuda << " " << libraries.nvml;
  }
  const GpuUse none = GpuUtilisation(2, libraries_).Read();
  EXPECT_FALSE(none.busy || none.memory);
}

TEST_F(Gpu, SaysNothingAfterACallThatFails) {
  for (const char* function :
       {"cuInit", "cuDeviceGetPCIBusId", "nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2"}) {
    Fail(function);
    const GpuUse use = GpuUtilisation(0, libraries_).Read();
    EXPECT_FALSE(use.busy || use.memory) << function;
    EXPECT_EQ(Began(), 0) << function;
  }
}

TEST_F(Gpu, SaysOneValueWithoutTheOther) {
  const GpuUtilisation gpu(0, libraries_);
  Fail("nvmlDeviceGetUtilizationRates");
  EXPECT_FALSE(gpu.Read().busy);
  EXPECT_EQ(gpu.Read().memory, 3 * kGiB);
  Fail("nvmlDeviceGetMemoryInfo");
  EXPECT_EQ(gpu.Read().busy, 0.75);
  EXPECT_FALSE(gpu.Read().memory);
}

TEST_F(Gpu, StandsInTheLinesAboutSteps) {
  const base::TemporaryDirectory folder;
  const base::ManualClock clock;
  const auto report_steps = [&](int gpu) {
    const auto path = folder.path() / std::to_string(gpu);
    ReportSinks sinks;
    sinks.metrics = {path};
    sinks.gpu_libraries = libraries_;
    const auto report = RunReport::Open({}, sinks, clock).value();
    Meter meter;
    meter.Add({.forward = 1}, 1.0, 1);
    EXPECT_TRUE(report->Started({.steps = 1, .steps_per_epoch = 1, .gpu = gpu}, 0).ok());
    report->Stepped(meter, 1, 0.1, true);
    const std::string lines = base::ReadFile(path).value();
    return nlohmann::json::parse(lines.substr(lines.find('\n') + 1));
  };
  const auto on_gpu = report_steps(1), on_cpu = report_steps(-1);
  EXPECT_EQ(on_gpu["gpu"], 0.1);
  EXPECT_EQ(on_gpu["gpu_memory"], kGiB);
  EXPECT_EQ(on_gpu["event"], "step");
  EXPECT_FALSE(on_cpu.contains("gpu") || on_cpu.contains("gpu_memory"));
  EXPECT_EQ(on_cpu["event"], "step");
}

}  // namespace
}  // namespace tutti::train
