// GpuReader reads what the GPUs that a job has on this node do, by NVIDIA's management library
// (base/gpus/nvml.h). Who has it asked without GPUs opens nothing. Not thread-safe; a call hangs
// as long as the driver does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/gpus/nvml.h"
#include "spec/json/usage_sample.h"

namespace tutti::launch {

class GpuReader {
 public:
  // `names`: as CUDA_VISIBLE_DEVICES names them: CUDA's numbers, which count those that this
  // process may use in the order of the bus; UUIDs, also their beginnings; MIG instances. As for
  // CUDA there is nothing behind a name that is none. `library`: "" is TUTTI_NVML_LIBRARY of this
  // process, or the driver's.
  explicit GpuReader(const std::vector<std::string>& names, std::string library = "");

  // Returns an entry for each GPU, in the order of the names; what one does not tell is unknown.
  // Empty where there is no library, or no driver.
  std::vector<spec::GpuUsage> Read() const;

 private:
  struct Gpu {
    std::string name;
    base::Nvml::Device device;  // null: it does not answer
  };

  std::unique_ptr<const base::Nvml> nvml_;
  std::vector<Gpu> gpus_;
};

}  // namespace tutti::launch
