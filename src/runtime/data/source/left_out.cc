#include "runtime/data/source/left_out.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace tutti::data {
namespace {

constexpr size_t kNamedFiles = 3;

// "a, b, c, …"
std::string FirstOf(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(kNamedFiles, names.size()); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", absl::Utf8SafeCEscape(names[i]));
  }
  return names.size() > kNamedFiles ? text + ", …" : text;
}

}  // namespace

std::vector<std::string> FilesWithoutSample(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return {absl::StrCat(names.size(), names.size() == 1 ? " file holds" : " files hold",
                       " no sample: ", FirstOf(names))};
}

}  // namespace tutti::data
