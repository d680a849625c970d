// Opens a store by Arrow's file systems: Azure Blob and Data Lake, S3, Google's storage, local
// folders. Once a process, before other threads start: it sets variables of the environment that
// the providers' libraries read.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Opens the container of the place for `connections` requests at the same time. InvalidArgument if
// place or credentials are not of a kind that can be had; Unavailable if a bucket's region cannot
// be asked for. Other errors show at the first call.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenArrowStore(const spec::DataPlace& place,
                                                            const Credentials& credentials,
                                                            int connections);

}  // namespace tutti::storage
