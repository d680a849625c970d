// Defines the names by which files and splits are found.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::data {

// Returns the names under which a split may lie: itself, and for "test" also "val" and
// "validation".
std::vector<std::string> NamesOfSplit(absl::string_view split);

// Returns the names in a folder, sorted. Errors name the folder.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::filesystem::path& folder);

// "<split>-00003-of-00128" of a TFRecord set; ".gz" may follow.
struct TfRecordName {
  std::string split;
  uint32_t number = 0, count = 0;
};
// Parses a name; false if it is none.
bool ParseTfRecordName(absl::string_view name, TfRecordName& parsed);

}  // namespace tutti::data
