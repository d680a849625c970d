// Writes sizes of memory and disks as the tools for them do: "512 MiB". Pure.
#pragma once

#include <cstdint>
#include <string>

namespace tutti::base {

// "512 MiB", "1.5 GiB".
std::string BinarySize(uint64_t bytes);

}  // namespace tutti::base
