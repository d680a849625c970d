// Reads and writes a small file of JSON that one process writes and others look at: what is missing
// in it, or of another type, keeps its default, as after a version that wrote it otherwise.
// Thread-safe.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::file_server {

// NotFound if there is none; DataLoss if it is no JSON object.
absl::StatusOr<nlohmann::json> ReadStateFile(const std::filesystem::path& file);
absl::Status WriteStateFile(const std::filesystem::path& file, const nlohmann::json& document);

// Takes a text or a whole number.
template <typename Value>
void TakeField(const nlohmann::json& document, const char* name, Value& value) {
  const auto found = document.find(name);
  if (found == document.end()) return;
  if constexpr (std::is_integral_v<Value>) {
    if (found->is_number_integer()) value = found->template get<Value>();
  } else {
    if (found->is_string()) value = found->template get<Value>();
  }
}

}  // namespace tutti::file_server
