#include "platform/launch/usage/gpu_reader.h"

#include <cstdlib>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

namespace tutti::launch {
namespace {

using base::Nvml;

constexpr char kDriversNvml[] = "libnvidia-ml.so.1";

std::string NvmlLibrary() {
  const char* const named = std::getenv("TUTTI_NVML_LIBRARY");
  return named != nullptr && *named != '\0' ? named : kDriversNvml;
}

// Returns those that this process may use, as CUDA counts them; null: one that does not answer.
std::vector<Nvml::Device> UsableDevices(const Nvml& nvml) {
  std::vector<Nvml::Device> devices;
  for (int i = 0; i < nvml.Count(); ++i) {
    bool denied = false;
    Nvml::Device const device = nvml.ByIndex(i, &denied);
    if (!denied) devices.push_back(device);
  }
  return devices;
}

// Returns the only one whose UUID begins so; null if there are none or several.
Nvml::Device DeviceThatBegins(const Nvml& nvml, const std::vector<Nvml::Device>& devices,
                              const std::string& name) {
  Nvml::Device found = nullptr;
  for (Nvml::Device const device : devices) {
    if (device == nullptr || !absl::StartsWith(nvml.UuidOf(device), name)) continue;
    if (found != nullptr) return nullptr;
    found = device;
  }
  return found;
}

// Returns nothing for a name that is none.
std::optional<Nvml::Device> DeviceOf(const Nvml& nvml, const std::vector<Nvml::Device>& devices,
                                     const std::string& name) {
  size_t number = 0;
  if (absl::SimpleAtoi(name, &number)) {
    return number < devices.size() ? std::optional(devices[number]) : std::nullopt;
  }
  Nvml::Device device = nvml.ByUuid(name);
  if (device == nullptr && absl::StartsWith(name, "GPU-")) {
    device = DeviceThatBegins(nvml, devices, name);
  }
  return device != nullptr ? std::optional(device) : std::nullopt;
}

float KnownOr(const std::optional<double>& value) {
  return value ? static_cast<float>(*value) : spec::kUnknownUsage;
}

}  // namespace

GpuReader::GpuReader(const std::vector<std::string>& names, std::string library) {
  if (names.empty()) return;
  nvml_ = Nvml::Open(library.empty() ? NvmlLibrary() : library);
  if (nvml_ == nullptr) return;
  const std::vector<Nvml::Device> devices = UsableDevices(*nvml_);
  for (const std::string& name : names) {
    const auto device = DeviceOf(*nvml_, devices, name);
    if (!device) return;
    gpus_.push_back({.name = name, .device = *device});
  }
}

std::vector<spec::GpuUsage> GpuReader::Read() const {
  std::vector<spec::GpuUsage> read;
  for (const auto& [name, device] : gpus_) {
    spec::GpuUsage& gpu = read.emplace_back(spec::GpuUsage{.gpu = name});
    if (device == nullptr) continue;
    gpu.use = KnownOr(nvml_->BusyPart(device));
    if (const auto memory = nvml_->MemoryOf(device)) {
      gpu.memory = static_cast<float>(memory->used);
      gpu.memory_total = static_cast<float>(memory->total);
    }
    gpu.power = KnownOr(nvml_->Watts(device));
    gpu.temperature = KnownOr(nvml_->Celsius(device));
  }
  return read;
}

}  // namespace tutti::launch
