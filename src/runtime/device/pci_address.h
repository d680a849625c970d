// Finds the PCI address of a GPU of this machine. No torch here.
#pragma once

#include <string>

namespace tutti::device {

// Returns "0000:65:00.0", of the GPU that CUDA gives this number; empty: CUDA does not say.
// `driver`: its library.
std::string PciAddress(int number, const char* driver = "libcuda.so.1");

}  // namespace tutti::device
