// Finds the part of a job's output that Batch AI kept under a name: "stdout.txt", "stderr-1.txt",
// "stdout-wk-0.txt". Pure function; thread-safe.
#pragma once

#include <optional>

#include "absl/strings/string_view.h"

namespace tutti::client {

struct BatchAiLog {
  int rank = -1;  // -1: all
  bool is_stderr = false;
};

// Returns the part; nothing for another name.
std::optional<BatchAiLog> LogOfBatchAi(absl::string_view name);

}  // namespace tutti::client
