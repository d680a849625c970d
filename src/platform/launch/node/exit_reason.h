// Records why a launcher ended before it could report it: a note in the allocation's folder, for
// the launcher that follows. The first one stays. JSON with the fields "pid", "start_time" (by
// which the engine knows whose it is) and "reason".
#pragma once

#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::launch {

// Writes why this process ends into the file `note`.
void RecordExitReason(const std::filesystem::path& note, absl::string_view reason);
// Records the same of whatever exception then ends this process.
void RecordExitReasonOnTerminate(const std::filesystem::path& note);
// Returns the reason; "" if there is none.
std::string ReadExitReason(const std::filesystem::path& note);

}  // namespace tutti::launch
