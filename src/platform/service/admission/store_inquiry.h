// Asks several stores at a time, so that one which does not answer keeps no other from being asked.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "platform/storage/storage_request.h"

namespace tutti::service {

// Asks one store and blocks; called by several threads at a time.
using StoreAnswer = absl::StatusOr<storage::StorageResult>;
using AskStore =
    std::function<StoreAnswer(const storage::StorageRequest& request, base::Deadline deadline)>;

// Returns the answer to each request, in their order. Equal requests are asked once and share the
// answer. A server is asked a few questions at a time. What is left at the deadline is
// DeadlineExceeded and not asked. Thread-safe; blocks.
std::vector<StoreAnswer> AskStores(const std::vector<storage::StorageRequest>& requests,
                                   base::Deadline deadline, const AskStore& ask);

}  // namespace tutti::service
