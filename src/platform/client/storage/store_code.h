// Fetches the code of a job that lies in a store, a folder or a single file.
#pragma once

#include <cstdint>
#include <filesystem>

#include "absl/status/statusor.h"
#include "platform/client/storage/storage_side.h"

namespace tutti::client {

// StoreCodeLimits bound what is taken for code. A snapshot of more bytes the service refuses.
struct StoreCodeLimits {
  int64_t files = 100'000;
  int64_t bytes = int64_t{8} << 30;
};

// Fetches all that is at the side's address into `folder`, which does not exist, and returns the
// code: the folder, or the one file in it. InvalidArgument, before anything is fetched, for a
// folder that is empty and for more than the limits; other errors are the side's.
absl::StatusOr<std::filesystem::path> FetchStoreCode(StorageSide& side,
                                                     const std::filesystem::path& folder,
                                                     const StoreCodeLimits& limits = {});

}  // namespace tutti::client
