// Brings a program that the service has packed (a snapshot of it, base/process/packed_program.h) to
// a node that does not have it, once, where the jobs of the node share it:
//
//   programs/HEX/        the program and its libraries, whole; HEX is the hash of the archive; last
//                        changed when a job last took it
//   programs/HEX.part/   what is unpacked of it, and
//   programs/HEX.tar.gz  what is fetched, while HEX.lock is held; what a launcher that was killed
//                        has left is made anew
//
// Versions that no job has taken for 30 days are removed when another one is made. Thread-safe.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::launch {

// Returns the path of the program `name` in the archive `snapshot` ("sha256:HEX"), below
// `programs`. `fetch` is called if it is not there: it makes a file of the archive, whose hash it
// has compared. Errors are those of `fetch` and of the disk; DataLoss if the archive has no such
// program; Cancelled once `cancelled` is set while another launcher makes it.
absl::StatusOr<std::filesystem::path> CarriedProgram(
    const std::string& name, const std::string& snapshot, const std::filesystem::path& programs,
    const std::function<absl::Status(const std::filesystem::path& file)>& fetch,
    const std::atomic<bool>& cancelled);

}  // namespace tutti::launch
