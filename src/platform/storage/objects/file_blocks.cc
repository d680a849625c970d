#include "platform/storage/objects/file_blocks.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/storage/storage_fault.h"

namespace tutti::storage {

absl::Status ReadBlocks(const std::filesystem::path& file, size_t most, const TakeBlock& take) {
  const auto opened = base::Open(file, O_RDONLY);
  if (!opened.ok()) return WithSource(opened.status(), FaultSource::kDisk);
  std::vector<char> block(most);
  while (true) {
    const ssize_t n = ::read(opened->get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return WithSource(base::ErrnoStatus(absl::StrCat("read ", file.string())),
                        FaultSource::kDisk);
    }
    if (n == 0) return absl::OkStatus();
    TUTTI_RETURN_IF_ERROR(take({block.data(), static_cast<size_t>(n)}));
  }
}

}  // namespace tutti::storage
