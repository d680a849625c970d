// Lists the GPUs that a process may use. Thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::base {

// Tells whether this process may open that device file. Neither opens nor wakes the device.
bool MayOpenDevice(const std::filesystem::path& file);

// Returns the N of the files nvidiaN in `devices` that this process may open, in rising order:
// device N is CUDA's number i where N stands at place i. A group of processes may be kept from some
// (Slurm's ConstrainDevices), whose files are there all the same.
std::vector<int> GpuDevices(
    const std::filesystem::path& devices = "/dev",
    const std::function<bool(const std::filesystem::path&)>& may_open = MayOpenDevice);

struct Gpu {
  int device = 0;    // N of its file nvidiaN
  std::string uuid;  // "GPU-8a5c…"
};

// Returns the GPUs of this machine in the order of the bus, in which the driver's tools and CUDA
// count them; that of their device files may be another one. Empty where the driver tells nothing.
std::vector<Gpu> GpusByBus(const std::filesystem::path& driver = "/proc/driver/nvidia/gpus");

// Returns the name that a CDI file of that text has for each of the devices, which CUDA counts from
// 0 on in the order of the result: the UUID, or, where the file names none, the place on the bus.
// Devices that are not among `gpus` keep their order, and their numbers as names.
std::vector<std::string> CdiNames(const std::vector<int>& devices, const std::vector<Gpu>& gpus,
                                  absl::string_view cdi);

// Returns what CUDA_VISIBLE_DEVICES of `variables` names, as it does; without it CUDA's numbers of
// all NVIDIA devices of this machine that the process may open.
std::vector<std::string> UsableGpus(const std::map<std::string, std::string>& variables);

}  // namespace tutti::base
