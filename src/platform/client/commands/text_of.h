// The text of what a command makes: a file's, or one that another command has written for it.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace tutti::client {

inline absl::StatusOr<std::string> TextOf(const std::string& file, const std::string& text,
                                          uint64_t max_bytes) {
  if (!text.empty()) return text;
  return base::ReadFile(file, max_bytes);
}

}  // namespace tutti::client
