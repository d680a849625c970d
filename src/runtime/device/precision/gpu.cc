#include "runtime/device/precision/gpu.h"

#include <dlfcn.h>

#include <array>

#include "base/symbol.h"

namespace tutti::device {
namespace {

using base::Resolve;

constexpr int kDriverSuccess = 0;
constexpr int kMajor = 75, kMinor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ..._MINOR

struct Driver {
  int (*init)(unsigned) = nullptr;
  int (*get)(int* device, int number) = nullptr;
  int (*name)(char* text, int size, int device) = nullptr;
  int (*attribute)(int* value, int which, int device) = nullptr;
  int (*memory)(size_t* bytes, int device) = nullptr;

  bool Load(const char* file) {
    void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);  // it stays loaded
    return library != nullptr && Resolve(library, "cuInit", init) &&
           Resolve(library, "cuDeviceGet", get) && Resolve(library, "cuDeviceGetName", name) &&
           Resolve(library, "cuDeviceGetAttribute", attribute) &&
           Resolve(library, "cuDeviceTotalMem_v2", memory);
  }
};

}  // namespace

std::optional<Gpu> GpuOf(int number, const char* driver) {
  Driver cuda;
  Gpu gpu;
  int device = 0;
  std::array<char, 128> name = {};
  size_t bytes = 0;
  const bool said =
      cuda.Load(driver) && cuda.init(0) == kDriverSuccess &&
      cuda.get(&device, number) == kDriverSuccess &&
      cuda.name(name.data(), static_cast<int>(name.size()) - 1, device) == kDriverSuccess &&
      cuda.attribute(&gpu.major, kMajor, device) == kDriverSuccess &&
      cuda.attribute(&gpu.minor, kMinor, device) == kDriverSuccess &&
      cuda.memory(&bytes, device) == kDriverSuccess;
  if (!said) return std::nullopt;
  gpu.name = name.data();
  gpu.memory = static_cast<double>(bytes);
  return gpu;
}

}  // namespace tutti::device
