// What the service says of itself to launchers: {"address": …, "token": …}.
#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::engine {

struct ServiceFile {
  std::string text;
  std::string address;
};

absl::StatusOr<ServiceFile> ReadServiceFile(const std::filesystem::path& file);

// No other machine gets there.
bool IsOfThisMachineOnly(absl::string_view address);

}  // namespace tutti::engine
