// Measures how busy a GPU is and how full its memory, by NVML (base/gpus/nvml.h), loaded when it
// is asked for. Thread-compatible.
#pragma once

#include <memory>
#include <optional>

#include "base/gpus/nvml.h"

namespace tutti::train {

struct GpuLibraries {
  const char* cuda = "libcuda.so.1";
  const char* nvml = "libnvidia-ml.so.1";
};

struct GpuUse {
  // Share of NVML's last sample period, a sixth of a second to one by the kind of GPU, in which a
  // kernel ran: of one process or another, on one multiprocessor or all.
  std::optional<double> busy;
  std::optional<double> memory;  // bytes, of all processes and the driver
};

class GpuUtilisation {
 public:
  // Watches the GPU that has this number for CUDA in this process. NVML numbers GPUs differently;
  // the place on the PCI bus says which one it is.
  explicit GpuUtilisation(int number, const GpuLibraries& libraries = {});

  // Reads it without what NVML does not tell: it is not there, or has no such value for this GPU or
  // user.
  GpuUse Read() const;

 private:
  std::unique_ptr<const base::Nvml> nvml_;
  base::Nvml::Device device_ = nullptr;  // null: it tells nothing
};

}  // namespace tutti::train
