// StagedBytes tells whether a job has filled the disk that all nodes share by itself: by its own
// code, inputs and environment, as its nodes put them in place. Then it would do so at each
// attempt, and all that others would write meanwhile waits for it. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/strings/string_view.h"

namespace tutti::launch {

class StagedBytes {
 public:
  // Counts from here on what this process and its children write, of which `nodes` do the same at a
  // time. An empty folder: nothing is shared.
  StagedBytes(const std::filesystem::path& shared_folder, int nodes);

  // Returns about how much of the disk the job has taken, if that is what has filled it, so that a
  // write there failed with that message; 0 if it may be others.
  uint64_t FilledTheDisk(absl::string_view message) const;

 private:
  int nodes_ = 1;
  uint64_t free_before_ = 0, disk_ = 0, written_before_ = 0;  // bytes
};

// Returns whether a job that has written so much is why a disk of `disk` bytes is full that had
// `free_before` bytes free; `is_quota`: or why its user's quota is used up, which no file system
// tells. One that was as good as full before is nobody's.
bool IsFilledBy(uint64_t written, uint64_t free_before, uint64_t disk, bool is_quota);

}  // namespace tutti::launch
