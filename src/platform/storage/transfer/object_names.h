// Checks that objects can be files of one folder. Pure functions.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// The names of what the program keeps beside the files that it fetches begin with this.
inline constexpr absl::string_view kOwnPrefix = ".tutti-";
// While it writes, it keeps these beside the objects of a place; they are no objects of the place.
inline constexpr absl::string_view kPutPrefix = ".tutti-put-";   // a file that becomes another
inline constexpr absl::string_view kProbeName = ".tutti-probe";  // whether one may write

// InvalidArgument, about the object, for the first name that would lead out of the folder ("../a",
// "/a"), that a file cannot have (an empty or too long component, a NUL), that is the program's
// own, or that is at the same time a folder of another ("a" and "a/b").
absl::Status CheckNames(const std::vector<StoredObject>& objects);

}  // namespace tutti::storage
