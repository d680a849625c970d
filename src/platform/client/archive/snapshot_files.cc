#include "platform/client/archive/snapshot_files.h"

#include <fcntl.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/code/code_archive.h"

namespace tutti::client {

namespace fs = std::filesystem;

absl::Status UnpackFiles(const fs::path& file, const fs::path& folder, uint64_t most_bytes) {
  TUTTI_ASSIGN_OR_RETURN(const auto archive, code::CodeArchive::Open(file));
  uint64_t bytes = 0;
  while (true) {
    TUTTI_ASSIGN_OR_RETURN(const auto entry, archive->Next());
    if (!entry) return absl::OkStatus();
    if (entry->kind != code::CodeEntry::Kind::kFile) continue;
    bytes += entry->bytes;
    if (bytes > most_bytes) return absl::ResourceExhaustedError("the code is too large to look at");
    const fs::path path = folder / entry->name;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(path, O_WRONLY | O_CREAT | O_EXCL,
                                                               entry->executable ? 0755 : 0644));
    TUTTI_RETURN_IF_ERROR(archive->WriteTo(fd.get(), path.string()));
  }
}

}  // namespace tutti::client
