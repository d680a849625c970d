#include "platform/client/archive/snapshot_files.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::client {
namespace {

namespace fs = std::filesystem;

struct FreeReader {
  void operator()(archive* a) const { archive_read_free(a); }
};

absl::Status BrokenArchive(archive* reader) {
  const char* const said = archive_error_string(reader);
  return absl::InvalidArgumentError(
      absl::StrCat("broken code archive: ", said == nullptr ? "unknown reason" : said));
}

bool LeavesItsFolder(const fs::path& name) {
  return name.empty() || name.is_absolute() ||
         std::any_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; });
}

absl::Status WriteEntry(archive* reader, archive_entry* entry, const fs::path& folder) {
  const char* const name = archive_entry_pathname(entry);
  if (name == nullptr || LeavesItsFolder(name)) {
    return absl::InvalidArgumentError("broken code archive: a file outside of its folder");
  }
  const fs::path file = folder / name;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  const int mode = (archive_entry_perm(entry) & 0100) != 0 ? 0755 : 0644;
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(file, O_WRONLY | O_CREAT | O_EXCL, mode));
  return archive_read_data_into_fd(reader, fd.get()) == ARCHIVE_OK ? absl::OkStatus()
                                                                   : BrokenArchive(reader);
}

}  // namespace

absl::Status UnpackFiles(const fs::path& file, const fs::path& folder, uint64_t most_bytes) {
  const std::unique_ptr<archive, FreeReader> reader(archive_read_new());
  archive_read_support_format_tar(reader.get());
  archive_read_support_filter_zstd(reader.get());
  if (archive_read_open_filename(reader.get(), file.c_str(), 1 << 16) != ARCHIVE_OK) {
    return BrokenArchive(reader.get());
  }
  uint64_t bytes = 0;
  archive_entry* entry = nullptr;
  while (true) {
    const int result = archive_read_next_header(reader.get(), &entry);
    if (result == ARCHIVE_EOF) return absl::OkStatus();
    if (result != ARCHIVE_OK) return BrokenArchive(reader.get());
    if (archive_entry_filetype(entry) != AE_IFREG) continue;
    bytes += static_cast<uint64_t>(std::max<int64_t>(archive_entry_size(entry), 0));
    if (bytes > most_bytes) return absl::ResourceExhaustedError("the code is too large to look at");
    TUTTI_RETURN_IF_ERROR(WriteEntry(reader.get(), entry, folder));
  }
}

}  // namespace tutti::client
