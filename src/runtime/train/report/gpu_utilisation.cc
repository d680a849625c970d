#include "runtime/train/report/gpu_utilisation.h"

#include <dlfcn.h>

#include <string>
#include <utility>

#include "base/symbol.h"
#include "runtime/device/pci_address.h"

namespace tutti::train {
namespace {

using base::Resolve;

constexpr int kNvmlSuccess = 0;

}  // namespace

struct GpuUtilisation::Nvml {
  struct Rates {
    unsigned gpu, memory;  // percent
  };
  struct Memory {
    unsigned long long total, free, used;  // NOLINT(google-runtime-int): the ABI's
  };
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*find)(const char* place, void** device) = nullptr;
  int (*rates)(void* device, Rates* rates) = nullptr;
  int (*memory)(void* device, Memory* memory) = nullptr;

  bool Load(const char* name) {
    void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);  // it stays loaded
    return library != nullptr && Resolve(library, "nvmlInit_v2", init) &&
           Resolve(library, "nvmlShutdown", shutdown) &&
           Resolve(library, "nvmlDeviceGetHandleByPciBusId_v2", find) &&
           Resolve(library, "nvmlDeviceGetUtilizationRates", rates) &&
           Resolve(library, "nvmlDeviceGetMemoryInfo", memory);
  }
};

GpuUtilisation::GpuUtilisation(int number, const GpuLibraries& libraries) {
  const std::string place = device::PciAddress(number, libraries.cuda);
  auto nvml = std::make_unique<Nvml>();
  if (place.empty() || !nvml->Load(libraries.nvml) || nvml->init() != kNvmlSuccess) return;
  if (nvml->find(place.c_str(), &device_) == kNvmlSuccess) {
    nvml_ = std::move(nvml);
  } else {
    nvml->shutdown();
  }
}

GpuUtilisation::~GpuUtilisation() {
  if (nvml_ != nullptr) nvml_->shutdown();
}

GpuUse GpuUtilisation::Read() const {
  GpuUse use;
  if (nvml_ == nullptr) return use;
  Nvml::Rates rates = {};
  if (nvml_->rates(device_, &rates) == kNvmlSuccess) use.busy = rates.gpu / 100.0;
  Nvml::Memory memory = {};
  if (nvml_->memory(device_, &memory) == kNvmlSuccess) {
    use.memory = static_cast<double>(memory.used);
  }
  return use;
}

}  // namespace tutti::train
