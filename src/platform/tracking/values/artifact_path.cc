#include "platform/tracking/values/artifact_path.h"

#include <string>

#include "absl/strings/str_split.h"

namespace tutti::tracking {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostPathBytes = 3000;

}  // namespace

absl::StatusOr<fs::path> ArtifactPath(absl::string_view path) {
  if (path.empty()) return fs::path();
  bool fits = path.size() <= kMostPathBytes && path.find('\0') == std::string::npos;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    fits = fits && !part.empty() && part != "." && part != ".." && part.size() <= 255;
  }
  if (fits) return fs::path(std::string(path));
  return absl::InvalidArgumentError("Invalid path");
}

}  // namespace tutti::tracking
