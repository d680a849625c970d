#include "platform/storage/transfer/object_names.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/container/flat_hash_map.h"
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

constexpr size_t kMostNamed = 20;  // by one message
constexpr size_t kLongestShownName = 200;

// Returns why no file can have that name; "" if one can.
std::string WhyNoFile(absl::string_view path) {
  if (path.find('\0') != absl::string_view::npos) return "its name has a NUL";
  if (path.size() > kLongestPath) return "its name is too long";
  if (absl::StartsWith(path, kOwnPrefix)) {
    return absl::StrCat("names that begin with ", kOwnPrefix, " are tutti's own");
  }
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty()) return "a component of its name is empty";
    if (part == "." || part == "..") return "its name leads out of the folder";
    if (part.size() > NAME_MAX) return "a component of its name is too long";
  }
  return "";
}

// Returns for each folder of the objects the first of those in it.
absl::flat_hash_map<absl::string_view, absl::string_view> FoldersOf(
    const std::vector<StoredObject>& objects) {
  absl::flat_hash_map<absl::string_view, absl::string_view> folders;
  for (const StoredObject& object : objects) {
    const absl::string_view path = object.path;
    for (size_t end = path.rfind('/'); end != absl::string_view::npos && end > 0;
         end = path.rfind('/', end - 1)) {
      if (!folders.try_emplace(path.substr(0, end), path).second) break;
    }
  }
  return folders;
}

}  // namespace

std::vector<RefusedName> RefusedNames(const std::vector<StoredObject>& objects) {
  std::vector<RefusedName> refused;
  absl::flat_hash_set<absl::string_view> names;
  const auto folders = FoldersOf(objects);
  for (const StoredObject& object : objects) {
    std::string why = WhyNoFile(object.path);
    const auto folder = folders.find(object.path);
    if (why.empty() && !names.insert(object.path).second) why = "it is there twice";
    if (why.empty() && folder != folders.end()) {
      why = absl::StrCat("it is a folder as well, of \"",
                         base::BoundedUtf8(folder->second, kLongestShownName), "\"");
    }
    if (!why.empty()) refused.push_back({object.path, std::move(why)});
  }
  return refused;
}

absl::Status CheckNames(const std::vector<StoredObject>& objects) {
  const std::vector<RefusedName> refused = RefusedNames(objects);
  if (refused.empty()) return absl::OkStatus();
  const auto named = [](const RefusedName& one) {
    return absl::StrCat("\"", base::BoundedUtf8(one.path, kLongestShownName), "\"");
  };
  std::string text = absl::StrCat("the object ", named(refused.front()),
                                  " cannot be a file of a folder: ", refused.front().why);
  for (size_t i = 1; i < std::min(refused.size(), kMostNamed); ++i) {
    absl::StrAppend(&text, i == 1 ? "; nor can " : ", ", named(refused[i]), " (", refused[i].why,
                    ")");
  }
  if (refused.size() > kMostNamed) {
    absl::StrAppend(&text, " and ", refused.size() - kMostNamed, " more");
  }
  return AboutObject(absl::InvalidArgumentError(text), refused.front().path);
}

}  // namespace tutti::storage
