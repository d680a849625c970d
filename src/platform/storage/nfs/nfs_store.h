// Opens an export of an NFSv4 server as a store whose files are objects. It is read alone: libnfs
// cannot write more than some kilobytes at once.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// InvalidArgument if the place's endpoint is no server. Other errors show at the first call. Puts
// and removals are Unimplemented.
absl::StatusOr<std::unique_ptr<ObjectStore>> OpenNfsStore(const spec::DataPlace& place);

}  // namespace tutti::storage
