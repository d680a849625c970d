// Reads a GPU's name and compute capability, as CUDA's driver tells them. No torch here.
#pragma once

#include <optional>
#include <string>

namespace tutti::device {

struct Gpu {
  std::string name;          // "NVIDIA H200"
  int major = 0, minor = 0;  // compute capability
  double memory = 0;         // bytes
};

// Returns the GPU that CUDA gives this number in this process; none: CUDA does not say. `driver`:
// its library.
std::optional<Gpu> GpuOf(int number, const char* driver = "libcuda.so.1");

}  // namespace tutti::device
