// Finds what a job has written into its working folder and not into ./outputs, ./logs or an output:
// it is removed with the folder, and the job's end says so. Only facts: the service words them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tutti::launch {

struct Unkept {
  std::string path;  // within the working folder: "checkpoints", "src/runs"
  uint64_t bytes = 0;
  bool result = false;  // a file of it is a result by its kind (result_kind.h)
};

struct UnkeptFiles {
  // The largest first: at most kMostUnkept with results, and as many without.
  std::vector<Unkept> largest;
  Unkept small;       // all else together, which may be nothing
  bool more = false;  // the limits ended the search: there may be more than this
};

struct UnkeptLimits {
  int entries = 200'000;
  absl::Duration time = absl::Seconds(2);
};

inline constexpr size_t kMostUnkept = 5;
// Places with less, and no result by its kind, are reported together as one.
inline constexpr uint64_t kSmallestUnkept = 1000;  // bytes

// Returns what was written after `since`, by the clock of the folder's file system (ChangeTime):
// before it the job's code came. Together what lies in one folder of the working folder, named by
// the deepest folder that holds all of it. A file of several names (hard links) counts once, if all
// are found here: with another one elsewhere it may be kept. Not counted: what a dot begins (.git,
// .cache), __pycache__, *.pyc, node_modules, Python environments, links. What cannot be read is
// passed over. Takes no longer than the limits.
UnkeptFiles UnkeptBelow(const std::filesystem::path& work, absl::Time since,
                        const UnkeptLimits& limits = {});

// Returns when the file was changed last; InfinitePast if that cannot be said.
absl::Time ChangeTime(const std::filesystem::path& file);

}  // namespace tutti::launch
