#include "runtime/data/source/left_out.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/data/decode/image_codec.h"

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

constexpr size_t kNamedKinds = 8, kLongestEnding = 12;

// ".gif" of "cat/A.GIF"; what is long is no ending.
std::string EndingOf(absl::string_view path) {
  const absl::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos || dot == 0 || name.size() - dot > kLongestEnding) {
    return "without an ending";
  }
  return absl::Utf8SafeCEscape(absl::AsciiStrToLower(name.substr(dot)));
}

}  // namespace

void LeftOutFiles::Add(absl::string_view path) {
  Kind& kind = kinds_[EndingOf(path)];
  if (++kind.count == 1 || path < kind.first) kind.first = std::string(path);
}

std::vector<std::string> LeftOutFiles::Remarks() const {
  if (kinds_.empty()) return {};
  int64_t all = 0;
  std::string kinds;
  size_t named = 0;
  for (const auto& [ending, kind] : kinds_) {
    all += kind.count;
    if (++named > kNamedKinds) continue;
    absl::StrAppend(&kinds, named == 1 ? "" : ", ", kind.count, " ", ending, " (",
                    absl::Utf8SafeCEscape(kind.first), kind.count > 1 ? ", …)" : ")");
  }
  return {absl::StrCat(all, all == 1 ? " file gives" : " files give", " no sample: ", kinds,
                       named > kNamedKinds ? ", …" : "", "; images end in ", ImageEndings())};
}

std::vector<std::string> FilesBesideClasses(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return {absl::StrCat(
      names.size(), names.size() == 1 ? " file lies" : " files lie",
      " beside the folders of classes, ",
      names.size() == 1 ? "and gives no sample: " : "and give no sample: ", FirstOf(names))};
}

std::vector<std::string> FilesWithoutSample(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  return {absl::StrCat(names.size(), names.size() == 1 ? " file holds" : " files hold",
                       " no sample: ", FirstOf(names))};
}

}  // namespace tutti::data
