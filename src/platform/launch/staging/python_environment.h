// Makes the Python environments of jobs by uv: once for each content, shared by every job and node
// that finds the folder, and never changed afterwards. A job gets a thin environment of its own on
// top, so that its `pip install` changes nothing for others.
//
//   environments/KEY/         a virtual environment; KEY is the hash of what was asked for; last
//                             changed when a job last took it, for the service's retention
//   environments/KEY/complete its last file: without it the folder is half made, or being made
//   environments/KEY.lock     held by who makes it
//   environments/KEY.log      each command of uv's, and what it said, without passwords
//   environments/KEY.as-of    the day as of which packages are resolved that are not pinned, of
//   what
//                             has KEY without that day (pin_dates.h)
//   environments/uv/          uv itself, where the machine has none
#pragma once

#include <atomic>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "spec/types/job.h"

namespace tutti::launch {

struct MadeEnvironment {
  std::filesystem::path folder;
  std::string note;  // what differs from what was asked for; empty: nothing
};

// Finds or makes it; waits while another makes it. FailedPrecondition names the packages that
// cannot be had with the lines that ask for them; Unavailable: it is not made, and this machine has
// no way to the package index; Cancelled once `cancelled` is set. For nodes with GPUs it may be
// another one than for nodes without (torch_builds.h).
absl::StatusOr<MadeEnvironment> MakeEnvironment(const spec::Environment& environment,
                                                const std::filesystem::path& environments,
                                                const std::atomic<bool>& cancelled,
                                                bool node_has_gpus);

// Returns "python3.11", the folder in its lib/ that has its packages; packages may put libraries
// beside it.
absl::StatusOr<std::string> LibraryOf(const std::filesystem::path& environment);

// Makes the job's own environment, in `folder`: its packages come before those of `shared`, whose
// programs, libraries and data (bin, lib, share, etc, include, ...) are all there, by links.
absl::Status MakeJobPython(const std::filesystem::path& shared,
                           const std::filesystem::path& folder);

// Returns the name of an environment's folder: equal content, equal name.
std::string EnvironmentKey(const spec::Environment& environment);

}  // namespace tutti::launch
