// Makes a StorageSide of a store, or of a folder of this machine, by the program tutti-storage.
#pragma once

#include <atomic>
#include <memory>

#include "platform/client/storage/storage_side.h"
#include "platform/client/storage/store_credentials.h"

namespace tutti::client {

// Makes the side of an address that is no job's. `cancelled` ends calls with Cancelled, once a put
// has given back what the store had begun to take; it outlives the side. Messages of errors name
// the address and say what to do.
std::unique_ptr<StorageSide> StoreSideOf(StorageAddress address, Connect connect,
                                         Variables variables, const std::atomic<bool>& cancelled);

}  // namespace tutti::client
