#include "base/gpus/nvml.h"

#include <dlfcn.h>

#include <utility>

#include "base/symbol.h"

namespace tutti::base {
namespace {

constexpr int kNvmlSuccess = 0, kNvmlNoPermission = 4;
constexpr unsigned kNvmlTemperatureOfGpu = 0;
constexpr unsigned kNvmlLongestUuid = 96;

}  // namespace

// Null: this library has no such function.
struct Nvml::Functions {
  struct Rates {
    unsigned gpu, memory;  // percent
  };
  struct Memory {
    unsigned long long total, free, used;  // NOLINT(google-runtime-int): the ABI's
  };
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned* count) = nullptr;
  int (*by_index)(unsigned index, void** device) = nullptr;
  int (*by_uuid)(const char* uuid, void** device) = nullptr;
  int (*by_place)(const char* place, void** device) = nullptr;
  int (*uuid)(void* device, char* text, unsigned size) = nullptr;
  int (*rates)(void* device, Rates* rates) = nullptr;
  int (*memory)(void* device, Memory* memory) = nullptr;
  int (*power)(void* device, unsigned* milliwatts) = nullptr;
  int (*temperature)(void* device, unsigned sensor, unsigned* celsius) = nullptr;

  explicit Functions(void* library) {
    Resolve(library, "nvmlInit_v2", init);
    Resolve(library, "nvmlShutdown", shutdown);
    Resolve(library, "nvmlDeviceGetCount_v2", count);
    Resolve(library, "nvmlDeviceGetHandleByIndex_v2", by_index);
    Resolve(library, "nvmlDeviceGetHandleByUUID", by_uuid);
    Resolve(library, "nvmlDeviceGetHandleByPciBusId_v2", by_place);
    Resolve(library, "nvmlDeviceGetUUID", uuid);
    Resolve(library, "nvmlDeviceGetUtilizationRates", rates);
    Resolve(library, "nvmlDeviceGetMemoryInfo", memory);
    Resolve(library, "nvmlDeviceGetPowerUsage", power);
    Resolve(library, "nvmlDeviceGetTemperature", temperature);
  }
};

std::unique_ptr<Nvml> Nvml::Open(const std::string& library) {
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // it stays loaded
  if (loaded == nullptr) return nullptr;
  auto functions = std::make_unique<const Functions>(loaded);
  if (functions->init == nullptr || functions->init() != kNvmlSuccess) return nullptr;
  return std::unique_ptr<Nvml>(new Nvml(std::move(functions)));
}

Nvml::Nvml(std::unique_ptr<const Functions> functions) : functions_(std::move(functions)) {}

Nvml::~Nvml() {
  if (functions_->shutdown != nullptr) functions_->shutdown();
}

int Nvml::Count() const {
  unsigned count = 0;
  const bool known = functions_->count != nullptr && functions_->count(&count) == kNvmlSuccess;
  return known ? static_cast<int>(count) : 0;
}

Nvml::Device Nvml::ByIndex(int index, bool* denied) const {
  Device device = nullptr;
  if (functions_->by_index == nullptr) return nullptr;
  const int result = functions_->by_index(static_cast<unsigned>(index), &device);
  if (denied != nullptr) *denied = result == kNvmlNoPermission;
  return result == kNvmlSuccess ? device : nullptr;
}

Nvml::Device Nvml::ByUuid(const std::string& uuid) const {
  Device device = nullptr;
  const bool found =
      functions_->by_uuid != nullptr && functions_->by_uuid(uuid.c_str(), &device) == kNvmlSuccess;
  return found ? device : nullptr;
}

Nvml::Device Nvml::ByPlace(const std::string& pci_address) const {
  Device device = nullptr;
  const bool found = functions_->by_place != nullptr &&
                     functions_->by_place(pci_address.c_str(), &device) == kNvmlSuccess;
  return found ? device : nullptr;
}

std::string Nvml::UuidOf(Device device) const {
  char text[kNvmlLongestUuid] = "";
  const bool known =
      functions_->uuid != nullptr && functions_->uuid(device, text, sizeof text) == kNvmlSuccess;
  return known ? text : "";
}

std::optional<double> Nvml::BusyPart(Device device) const {
  Functions::Rates rates = {};
  if (functions_->rates == nullptr || functions_->rates(device, &rates) != kNvmlSuccess) {
    return std::nullopt;
  }
  return rates.gpu / 100.0;
}

std::optional<Nvml::Memory> Nvml::MemoryOf(Device device) const {
  Functions::Memory memory = {};
  if (functions_->memory == nullptr || functions_->memory(device, &memory) != kNvmlSuccess) {
    return std::nullopt;
  }
  return Memory{.used = static_cast<double>(memory.used),
                .total = static_cast<double>(memory.total)};
}

std::optional<double> Nvml::Watts(Device device) const {
  unsigned milliwatts = 0;
  if (functions_->power == nullptr || functions_->power(device, &milliwatts) != kNvmlSuccess) {
    return std::nullopt;
  }
  return milliwatts / 1000.0;
}

std::optional<double> Nvml::Celsius(Device device) const {
  unsigned celsius = 0;
  const bool known =
      functions_->temperature != nullptr &&
      functions_->temperature(device, kNvmlTemperatureOfGpu, &celsius) == kNvmlSuccess;
  return known ? std::optional<double>(celsius) : std::nullopt;
}

}  // namespace tutti::base
