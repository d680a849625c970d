// Lists the RDMA ports (InfiniBand, RoCE) of this machine whose link is up. Thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tutti::base {

// Where the kernel lists the devices, each with its ports.
inline constexpr char kRdmaDevices[] = "/sys/class/infiniband";

// Returns "mlx5_0 port 1" of each port of `devices` whose link is up. Without iWARP's, which UCX
// does not know.
std::vector<std::string> ActiveRdmaPorts(const std::filesystem::path& devices = kRdmaDevices);

}  // namespace tutti::base
