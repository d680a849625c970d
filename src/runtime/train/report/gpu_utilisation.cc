#include "runtime/train/report/gpu_utilisation.h"

#include "runtime/device/pci_address.h"

namespace tutti::train {

GpuUtilisation::GpuUtilisation(int number, const GpuLibraries& libraries) {
  const std::string place = device::PciAddress(number, libraries.cuda);
  if (!place.empty()) nvml_ = base::Nvml::Open(libraries.nvml);
  if (nvml_ != nullptr) device_ = nvml_->ByPlace(place);
}

GpuUse GpuUtilisation::Read() const {
  GpuUse use;
  if (device_ == nullptr) return use;
  use.busy = nvml_->BusyPart(device_);
  if (const auto memory = nvml_->MemoryOf(device_)) use.memory = memory->used;
  return use;
}

}  // namespace tutti::train
