// Starts the programs' own log, which has one line a record on standard error:
// "2026-11-20T08:00:00.123Z I text". Rooms log through spdlog's default logger
// (spdlog::info("...")); a library call never logs what it returns as an error.
#pragma once

#include "absl/strings/string_view.h"

namespace tutti::base {

// Call once at the start of main. `level`: trace, debug, info, warn, error, off.
void StartLogging(absl::string_view level = "info");

// Logs a record of level warning, for rooms that have libtorch: its headers bring another fmt than
// spdlog's.
void Warn(absl::string_view text);

}  // namespace tutti::base
