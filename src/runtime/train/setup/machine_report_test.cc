// Covers: runtime/device/memory_speed.cc.
#include "runtime/train/setup/machine_report.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tutti::train {
namespace {

TEST(DescribeMachine, MeasuresMemoryAndSteps) {
  const int before = at::get_num_threads();
  const auto report = DescribeMachine();
  at::set_num_threads(before);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(report->processor.empty());
  EXPECT_GE(report->threads, 1);
  EXPECT_GT(report->memory_speed, 1e8) << "slower than a disk";
  EXPECT_GT(report->images_per_second, 0);
  EXPECT_GE(report->images_per_second_alone, 0.999 * report->images_per_second);
  EXPECT_EQ(report->gpu.has_value(), report->no_gpu.empty());
  EXPECT_NE(report->precision.why.find("(auto): this "), std::string::npos);
}

TEST(MachineReport, IsOneLineOfJson) {
  MachineReport report{.processor = "AMD \xff",
                       .instructions = "AVX2",
                       .threads = 2,
                       .memory_speed = 2e10,
                       .precision = {"fp32", "precision fp32 (auto): ..."},
                       .images_per_second = 430,
                       .images_per_second_alone = 440,
                       .no_gpu = "none"};
  const std::string alone = AsJson(report);
  EXPECT_EQ(alone.find('\n'), alone.size() - 1);
  EXPECT_EQ(nlohmann::json::parse(alone)["gpu"], nullptr);
  EXPECT_EQ(nlohmann::json::parse(alone)["images_per_second"], 430);
  EXPECT_EQ(nlohmann::json::parse(alone)["images_per_second_alone"], 440);
  report.gpu = device::Gpu{"NVIDIA H200", 9, 0, 1e11};
  const auto json = nlohmann::json::parse(AsJson(report));
  EXPECT_EQ(json["gpu"]["compute_capability"], "9.0");
}

}  // namespace
}  // namespace tutti::train
