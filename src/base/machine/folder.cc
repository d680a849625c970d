#include "base/machine/folder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <system_error>

#include "base/file.h"

namespace tutti::base {

namespace fs = std::filesystem;

std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().native());
  }
  return names;
}

std::optional<absl::Time> ChangedAt(const fs::path& path) {
  struct stat info = {};
  const auto opened = Open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!opened.ok() || ::fstat(opened->get(), &info) != 0) return std::nullopt;
  return absl::TimeFromTimespec(info.st_mtim);
}

fs::path NearestThatIsThere(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

}  // namespace tutti::base
