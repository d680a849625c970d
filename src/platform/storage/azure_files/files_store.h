// Opens a share of Azure Files by its REST interface, of which Arrow has no file system.
// https://learn.microsoft.com/rest/api/storageservices/file-service-rest-api
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// InvalidArgument if place or credentials are not of a kind that can be had: a share takes an
// account key or a signature. Other errors show at the first call.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenFilesStore(const spec::DataPlace& place,
                                                            const Credentials& credentials);

}  // namespace tutti::storage
