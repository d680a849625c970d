// Reads and writes lists that commands keep in the service's folder, one file of JSON each: {"KEY":
// [...]}. The file is always whole, the old list or the new. A list is changed under its lock.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace tutti::spec {

// Gets each entry with its place, as "assets[3]".
using EachEntry = std::function<absl::Status(const nlohmann::json& entry, std::string location)>;

// Reads the content of a list. `file` is its name as errors show it.
absl::Status ReadListText(absl::string_view text, const std::string& file, const char* key,
                          const EachEntry& each);
// Reads a list from its file. Without the file there are no entries.
absl::Status ReadList(const std::filesystem::path& file, const char* key, const EachEntry& each);
// Writes `entries`, a JSON array.
absl::Status WriteList(const std::filesystem::path& file, const char* key,
                       const nlohmann::json& entries);

// Locks the list; to be held while a list is read, changed and written.
absl::StatusOr<base::UniqueFd> LockList(const std::filesystem::path& file);

}  // namespace tutti::spec
