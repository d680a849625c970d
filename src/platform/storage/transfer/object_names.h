// Checks that objects can be files of one folder. Pure functions.
#pragma once

#include <string>
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

struct RefusedName {
  std::string path;
  std::string why;
};
// Returns each of the names that cannot be a file's, in the order of the objects: those that would
// lead out of the folder ("../a", "/a"), that a file cannot have (an empty or too long component, a
// NUL), that are the program's own, there twice, or at the same time the folder of another ("a" and
// "a/b").
std::vector<RefusedName> RefusedNames(const std::vector<StoredObject>& objects);
// InvalidArgument, about the first of them, that names them.
absl::Status CheckNames(const std::vector<StoredObject>& objects);

}  // namespace tutti::storage
