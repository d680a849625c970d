// Checks that files can be written in a folder, and come back as they were.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "platform/health/node_check.h"

namespace tutti::health {

// A node takes no job while its disk has less than this: staging would fail.
struct DiskLimits {
  uint64_t bytes = 1 << 20;
  uint64_t inodes = 64;
};

// Looks at space and inodes, then writes a small file, syncs it, reads it and removes it. Takes as
// long as the disk does, for ever if that hangs.
NodeCheck CheckDisk(const std::string& name, const std::filesystem::path& folder,
                    const DiskLimits& limits = {});

}  // namespace tutti::health
