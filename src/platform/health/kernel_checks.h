// Checks memory and links by what the kernel says of them. `root` is "/", but in tests.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "platform/health/node_check.h"

namespace tutti::health {

// Looks for memory that is nearly used up, and errors of it that its ECC could not correct.
NodeCheck CheckMemory(const std::filesystem::path& root = "/");

// Checks that each of `links` is up: "eth0", an RDMA device "mlx5_0" (one port of it), "mlx5_0:1".
NodeCheck CheckLinks(const std::vector<std::string>& links,
                     const std::filesystem::path& root = "/");

}  // namespace tutti::health
