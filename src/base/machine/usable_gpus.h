// Lists the GPUs that a process may use. Thread-safe.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace tutti::base {

// Tells whether this process may open that device file. Neither opens nor wakes the device.
bool MayOpenDevice(const std::filesystem::path& file);

// Returns the N of the files nvidiaN in `devices` that this process may open, in rising order:
// device N is CUDA's number i where N stands at place i. A group of processes may be kept from some
// (Slurm's ConstrainDevices), whose files are there all the same.
std::vector<int> GpuDevices(
    const std::filesystem::path& devices = "/dev",
    const std::function<bool(const std::filesystem::path&)>& may_open = MayOpenDevice);

// Returns what CUDA_VISIBLE_DEVICES of `variables` names, as it does; without it CUDA's numbers of
// all NVIDIA devices of this machine that the process may open.
std::vector<std::string> UsableGpus(const std::map<std::string, std::string>& variables);

}  // namespace tutti::base
