#include "platform/engine/node_files.h"

#include <fcntl.h>

#include <system_error>

#include "base/file.h"

namespace tutti::engine {

bool IsThere(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool IsThereByNow(const std::filesystem::path& path) {
  base::Open(path.parent_path(), O_RDONLY | O_DIRECTORY).status().IgnoreError();
  return IsThere(path);
}

}  // namespace tutti::engine
