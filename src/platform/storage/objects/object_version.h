// Says by what the version of an object is known. A list has the size and the time of the last
// change of each object, and no ETag, for which the store must be asked once an object. The time
// does if it is long ago: an object that changes later has a later one. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Returns whether the object was last changed before that moment (StorageRequest::settled_before).
bool IsSettled(const StoredObject& object, int64_t settled_before);

// Returns its time if it is settled or has no ETag, else its ETag.
std::string VersionOf(const StoredObject& object, int64_t settled_before);

// Sets what the store has said of a listed object when it was asked for it. One that has changed
// since it was listed is no longer settled.
void TakeAnswer(const StoredObject& answer, StoredObject& listed);

}  // namespace tutti::storage
