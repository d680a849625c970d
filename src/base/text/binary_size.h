// Writes sizes of memory and disks as the tools for them do ("512 MiB"), and reads them as users
// write them. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::base {

// Returns "512 MiB", "1.5 GiB".
std::string BinarySize(uint64_t bytes);

// Reads "500MB", "200 GB", "1.5GiB", "2TB", in any case; none if it is no such text, or more than
// 1e18.
std::optional<uint64_t> ReadSize(absl::string_view text);

}  // namespace tutti::base
