#include "platform/container/registries.h"

#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kSearch = "unqualified-search-registries";
constexpr uint64_t kLargest = 1 << 20;

// Returns the file by the rules of containers-registries.conf(5).
fs::path FileOf(const std::map<std::string, std::string>& variables) {
  const auto given = variables.find("CONTAINERS_REGISTRIES_CONF");
  if (given != variables.end() && !given->second.empty()) return given->second;
  std::error_code error;
  if (const auto home = variables.find("HOME"); home != variables.end()) {
    const fs::path own = fs::path(home->second) / ".config/containers/registries.conf";
    if (fs::exists(own, error)) return own;
  }
  return "/etc/containers/registries.conf";
}

}  // namespace

std::string WithDockerHub(absl::string_view registries) {
  for (absl::string_view line : absl::StrSplit(registries, '\n')) {
    line = absl::StripLeadingAsciiWhitespace(line);
    const bool is_first_version = absl::StartsWith(line, "[registries.");  // mixes with no other
    if (absl::StartsWith(line, kSearch) || is_first_version) return std::string(registries);
  }
  return absl::StrCat(kSearch, " = [\"docker.io\"]\n", registries);
}

absl::StatusOr<fs::path> WriteRegistries(const std::map<std::string, std::string>& variables,
                                         const fs::path& folder) {
  auto registries = base::ReadFile(FileOf(variables), kLargest);
  if (absl::IsNotFound(registries.status())) registries = "";
  TUTTI_RETURN_IF_ERROR(registries.status());
  const fs::path file = folder / "registries.conf";
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(file, WithDockerHub(*registries)));
  return file;
}

}  // namespace tutti::container
