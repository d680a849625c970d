// Reads what a store says of an object beside its bytes. Pure function.
#pragma once

#include <functional>
#include <string>

#include "platform/storage/storage_request.h"

namespace tutti::storage {

// Returns the value of a header, or of a field that Arrow makes of one; "" if there is none.
using HeaderLookup = std::function<std::string(const char* name)>;

// Sets etag, md5 and modified of the object, those that the headers tell. The version of an object
// of Google's is its generation, since its ETag changes with what is said of it, too. The MD5 is
// Azure's or Google's own, else an ETag that can be one, as of S3. A value that is no such thing,
// or too long, is left out.
void TakeHeaders(const HeaderLookup& header, StoredObject& object);

}  // namespace tutti::storage
