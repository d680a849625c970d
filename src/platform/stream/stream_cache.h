// Opens what a place has as objects of the node's cache that come one by one. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_request.h"
#include "platform/stream/stream_request.h"
#include "platform/stream/streamed_objects.h"

namespace tutti::stream {

// OpenedStream keeps its part of the cache there as long as it lives.
struct OpenedStream {
  std::vector<base::UniqueFd> held;  // locks and pins; they outlive the objects
  std::unique_ptr<StreamedObjects> objects;
};

// Lists the place, unless its list is given, and opens it in the cache that is asked for, under a
// key that belongs to the place; where another process has that, under the next. What a whole
// version in the cache has of it is taken from there. It takes nine tenths of what is free on the
// disk at the most. `store` outlives the result. Errors are those of storage::SurveyPlace and of
// the disk.
absl::StatusOr<OpenedStream> OpenStream(storage::ObjectStore& store,
                                        const storage::StorageRequest& request,
                                        const StreamRequest& asked,
                                        const storage::Attempts& attempts);

}  // namespace tutti::stream
