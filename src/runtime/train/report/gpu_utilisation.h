// Measures how busy a GPU is and how full its memory, by NVML, which comes with the driver and is
// loaded when it is asked for. Written from the documented ABI of CUDA's driver interface and of
// NVML, whose functions here have not changed since CUDA 5.5. Thread-compatible.
#pragma once

#include <memory>
#include <optional>

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
  ~GpuUtilisation();
  GpuUtilisation(const GpuUtilisation&) = delete;
  GpuUtilisation& operator=(const GpuUtilisation&) = delete;

  // Reads it without what NVML does not tell: it is not there, or has no such value for this GPU or
  // user.
  GpuUse Read() const;

 private:
  struct Nvml;
  std::unique_ptr<const Nvml> nvml_;  // null: it tells nothing
  void* device_ = nullptr;
};

}  // namespace tutti::train
