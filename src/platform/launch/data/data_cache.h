// DataCache is where inputs are fetched into; FetchedInput is the result of one fetch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/unique_fd.h"
#include "platform/cache/fetched_home.h"
#include "platform/storage/storage_request.h"

namespace tutti::launch {

struct DataCache {
  std::filesystem::path folder;  // HOME/data (cache/node_cache.h)
  cache::Reread reread = cache::Reread::kOnceABoot;
  uint64_t most_bytes = 0;                   // that it is to have; 0: no limit
  std::optional<storage::Peers> peers = {};  // that fetch the same at the same time
};

struct FetchedInput {
  std::filesystem::path path;
  base::UniqueFd pin;  // keeps it from removal as long as it is open
};

}  // namespace tutti::launch
