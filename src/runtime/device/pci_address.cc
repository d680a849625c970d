#include "runtime/device/pci_address.h"

#include <dlfcn.h>

#include <array>

#include "base/symbol.h"

namespace tutti::device {
namespace {

using base::Resolve;

constexpr int kCudaSuccess = 0;

}  // namespace

std::string PciAddress(int number, const char* driver) {
  void* const library = ::dlopen(driver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "";
  int (*init)(unsigned) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*place)(char*, int, int) = nullptr;
  const bool complete = Resolve(library, "cuInit", init) && Resolve(library, "cuDeviceGet", get) &&
                        Resolve(library, "cuDeviceGetPCIBusId", place);
  int device = 0;
  std::array<char, 32> text = {};
  const bool said = complete && init(0) == kCudaSuccess && get(&device, number) == kCudaSuccess &&
                    place(text.data(), text.size(), device) == kCudaSuccess;
  return said ? text.data() : "";
}

}  // namespace tutti::device
