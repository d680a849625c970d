#include "platform/storage/transfer/object_names.h"

#include <climits>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/storage/transfer/attempts.h"

namespace tutti::storage {
namespace {

constexpr size_t kLongestPath = PATH_MAX / 2;  // the folder has a path as well

absl::Status Refused(absl::string_view path, absl::string_view why) {
  return AboutObject(
      absl::InvalidArgumentError(absl::StrCat("the object \"", base::BoundedUtf8(path, 200),
                                              "\" cannot be a file of a folder: ", why)),
      path);
}

absl::Status CheckName(absl::string_view path) {
  if (path.find('\0') != absl::string_view::npos) return Refused(path, "its name has a NUL");
  if (path.size() > kLongestPath) return Refused(path, "its name is too long");
  if (absl::StartsWith(path, kOwnPrefix)) {
    return Refused(path, absl::StrCat("names that begin with ", kOwnPrefix, " are tutti's own"));
  }
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty()) return Refused(path, "a component of its name is empty");
    if (part == "." || part == "..") return Refused(path, "its name leads out of the folder");
    if (part.size() > NAME_MAX) return Refused(path, "a component of its name is too long");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckNames(const std::vector<StoredObject>& objects) {
  absl::flat_hash_set<absl::string_view> names;
  for (const StoredObject& object : objects) {
    TUTTI_RETURN_IF_ERROR(CheckName(object.path));
    if (!names.insert(object.path).second) return Refused(object.path, "it is there twice");
  }
  for (const StoredObject& object : objects) {
    const absl::string_view path = object.path;
    for (size_t end = path.rfind('/'); end != absl::string_view::npos && end > 0;
         end = path.rfind('/', end - 1)) {
      if (!names.contains(path.substr(0, end))) continue;
      return Refused(path.substr(0, end), absl::StrCat("it is a folder as well, of \"",
                                                       base::BoundedUtf8(path, 200), "\""));
    }
  }
  return absl::OkStatus();
}

}  // namespace tutti::storage
