// Where `tutti-storage stream` listens, by agreement of all who start it and who read from it
// (docs/formats/stream.md). Thread-safe.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::base {

// Returns the path of the socket at which an address is served out of that cache, in a folder of
// this user's own, which is made. `stream`: TUTTI_DATA_STREAM, which the launcher gives the
// processes of a job whose inputs it serves; empty elsewhere. FailedPrecondition if somebody else
// has that folder.
absl::StatusOr<std::filesystem::path> DataSocketOf(absl::string_view address,
                                                   const std::filesystem::path& cache,
                                                   absl::string_view stream = "");

}  // namespace tutti::base
