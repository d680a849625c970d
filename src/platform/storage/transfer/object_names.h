// Checks that objects can be files of one folder. Pure functions.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/storage/storage_request.h"

namespace tutti::storage {

// What the program keeps beside the files that it fetches has names with this beginning.
inline constexpr absl::string_view kOwnPrefix = ".tutti-";
// What it keeps beside the objects of a place for as long as it writes, which is no object of it.
inline constexpr absl::string_view kPutPrefix = ".tutti-put-";   // a file that becomes another
inline constexpr absl::string_view kProbeName = ".tutti-probe";  // whether one may write

// InvalidArgument, about the object, for the first name that would lead out of the folder ("../a",
// "/a"), that a file cannot have (an empty or too long component, a NUL), that is the program's
// own, or that is at the same time a folder of another ("a" and "a/b").
absl::Status CheckNames(const std::vector<StoredObject>& objects);

}  // namespace tutti::storage
