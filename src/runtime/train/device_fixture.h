// OnDevice runs a test on each device that there is: its parameter is "cpu" or "cuda".
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "runtime/device/device.h"

namespace tutti::train {

// Before anything else: libtorch looks for devices once.
inline const absl::StatusOr<torch::Device> gpu = device::Open("cuda");

// `Fixture`, skipped on a device that there is not.
template <class Fixture>
class OnDevice : public Fixture, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (on_gpu() && !gpu.ok()) GTEST_SKIP() << gpu.status().message();
  }
  bool on_gpu() const { return this->GetParam() == std::string("cuda"); }
};

}  // namespace tutti::train
