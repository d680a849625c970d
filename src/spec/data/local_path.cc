#include "spec/data/local_path.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "spec/data/data_map.h"

namespace tutti::spec {

absl::StatusOr<std::string> LocalPath(absl::string_view path, const std::filesystem::path& base) {
  const absl::string_view written = path;
  if (absl::ConsumePrefix(&path, "file:")) {
    absl::ConsumePrefix(&path, "//localhost");
    if (absl::StartsWith(path, "///")) path.remove_prefix(2);
  }
  const size_t colon = path.find(':');
  const absl::string_view scheme = path.substr(0, colon);
  const bool has_scheme = colon != absl::string_view::npos && scheme.size() > 1 &&
                          std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
                            return absl::ascii_isalnum(c) || c == '+' || c == '-' || c == '.';
                          });
  if (has_scheme || absl::StartsWith(path, "//")) {
    return absl::InvalidArgumentError(absl::StrCat("path \"", ShownAddress(written),
                                                   "\" is not on this machine; give a local file "
                                                   "or folder"));
  }
  std::string absolute = (base / std::string(path)).lexically_normal().string();
  if (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return absolute;
}

}  // namespace tutti::spec
