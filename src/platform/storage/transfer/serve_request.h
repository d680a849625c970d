// Does what one request asks, over any store, and gives the answer line by line. Thread-safe.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_json.h"
#include "platform/storage/transfer/attempts.h"

namespace tutti::storage {

// Writes one line of the answer, without its end; called by one thread at a time.
using AnswerWriter = std::function<void(const AnswerLine&)>;

// Writes the whole answer but for its last line, which is returned: what was done, or the error,
// whose message names the place and has none of the credentials' values.
AnswerLine ServeRequest(ObjectStore& store, const StorageRequest& request, const Attempts& attempts,
                        const AnswerWriter& write);

// Returns the last line for an error of a request: one line of text, with the place before it, and
// without the credentials' values (credential_mask.h).
StorageFailure FailureOf(const absl::Status& status, const StorageRequest& request);

}  // namespace tutti::storage
