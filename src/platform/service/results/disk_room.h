// Tells whether the disk of the service's folder has room for new jobs, beside what those that are
// there still have to note.
#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/status.h"

namespace tutti::service {

// Returns the free bytes below which a disk of that size takes nothing more: 64 MiB, or a 64th of a
// smaller one, and 4 MiB at least.
uint64_t LeastRoom(uint64_t bytes_of_disk);

struct DiskRoom {
  // ResourceExhausted if the disk is full but for LeastRoom: a line with what is free, where, and
  // what to do. OK if it cannot be told.
  absl::Status status;
  uint64_t least = 0;  // LeastRoom of the disk; 0 if it cannot be told
};

// Asks the file system of `directory`; reads no file.
DiskRoom RoomOf(const std::filesystem::path& directory);

// Returns the status of RoomOf alone.
absl::Status CheckRoom(const std::filesystem::path& directory);

}  // namespace tutti::service
