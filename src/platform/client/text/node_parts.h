// Parts of nodes as people read them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace tutti::client {

// Writes {0, 1, 2, 5} as "0-2,5".
std::string Ranges(const std::vector<int>& numbers);

// Returns "2 cores, 8 GB, 1 GPU"; without what there is none of.
std::string PartText(int cores, uint64_t memory_bytes, int gpus);

// Returns "n1 (cores 0-1, 8 GB, GPU 3)".
std::string PlaceText(absl::string_view node, const std::vector<int>& cores, uint64_t memory_bytes,
                      const std::vector<std::string>& gpus);

}  // namespace tutti::client
