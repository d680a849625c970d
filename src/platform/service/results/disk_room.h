// Tells whether the disk of the service's folder has room for new jobs, beside what those that are
// there still have to note.
#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/status.h"

namespace tutti::service {

// Below so many free bytes a disk of that size takes nothing more: 64 MiB, or a 64th of a smaller
// one, and 4 MiB at least.
uint64_t LeastRoom(uint64_t bytes_of_disk);

// ResourceExhausted if it is full but for that: a line with what is free, where, and what to do. OK
// if it cannot be told. Reads no file.
absl::Status CheckRoom(const std::filesystem::path& directory);

}  // namespace tutti::service
