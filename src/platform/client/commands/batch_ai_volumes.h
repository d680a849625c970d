// Where the volumes of a cluster of Batch AI's are noted, which the jobs on the compute of its name
// have; they go with the compute.
#pragma once

#include <filesystem>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tutti::client {

inline std::filesystem::path VolumesFile(const std::filesystem::path& home,
                                         const std::string& cluster) {
  return home / "batch-ai" / absl::StrCat(absl::AsciiStrToLower(cluster), ".json");
}

}  // namespace tutti::client
