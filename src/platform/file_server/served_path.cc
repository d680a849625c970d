#include "platform/file_server/served_path.h"

#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "spec/data/file_server.h"

namespace tutti::file_server {
namespace fs = std::filesystem;
namespace {

bool LiesBelow(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

absl::StatusOr<fs::path> ServedPath(const fs::path& folder, const fs::path& home) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || !fs::is_directory(real, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("folder ", folder.native(),
                     " is no folder of this machine: make it first, or mount its disk"));
  }
  if (real == real.root_path()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "folder ", folder.native(), " is the whole machine: name one that has data alone"));
  }
  const fs::path real_home = fs::weakly_canonical(home, error);
  for (const fs::path& path : {real, home, real_home}) {
    if (spec::IsPlainPath(path.native())) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path.native(),
                     " has a quotation mark, a backslash or a control character, which the "
                     "server's configuration cannot have: rename it"));
  }
  if (!LiesBelow(real, real_home) && !LiesBelow(real_home, real)) return real;
  return absl::InvalidArgumentError(absl::StrCat(
      "folder ", folder.native(), " and the service's folder ", home.native(),
      " lie in each other, and its tokens and secrets would be served: take another folder"));
}

}  // namespace tutti::file_server
