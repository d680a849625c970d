// Makes a StorageSide of a job's results and logs, which the service has. They can only be read.
#pragma once

#include <memory>

#include "platform/client/connection/connection.h"
#include "platform/client/storage/storage_side.h"

namespace tutti::client {

// Makes the side of "job:NAME/PATH"; NAME may be the beginning of a job's.
absl::StatusOr<std::unique_ptr<StorageSide>> JobSideOf(StorageAddress address,
                                                       const Connect& connect);

}  // namespace tutti::client
