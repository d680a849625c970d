#include "platform/launch/staging/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;

struct Free {
  void operator()(archive* a) const { archive_read_free(a); }
};
using Reader = std::unique_ptr<archive, Free>;

// Returns what the system said, or what is wrong with the archive: EILSEQ and EINVAL are the
// library's own.
absl::Status ArchiveError(archive* reader) {
  const char* const said = archive_error_string(reader);
  const std::string text = said == nullptr ? "unknown reason" : said;
  const int number = archive_errno(reader);
  if (number > 0 && number != EILSEQ && number != EINVAL) return base::ErrnoStatus(text, number);
  return absl::InvalidArgumentError(absl::StrCat("broken archive: ", text));
}

class Unpacking {
 public:
  Unpacking(archive* reader, fs::path folder) : reader_(reader), folder_(std::move(folder)) {}

  absl::Status Run() {
    archive_entry* entry = nullptr;
    while (true) {
      const int result = archive_read_next_header(reader_, &entry);
      if (result == ARCHIVE_EOF) return MakeLinks();
      if (result != ARCHIVE_OK) return ArchiveError(reader_);
      TUTTI_RETURN_IF_ERROR(Take(entry));
    }
  }

 private:
  absl::Status Take(archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    if (raw == nullptr) return absl::InvalidArgumentError("an entry of the archive has no name");
    TUTTI_ASSIGN_OR_RETURN(const std::string name, SafeRelativePath(raw));
    if (archive_entry_hardlink(entry) != nullptr) return Refuse(raw, "a hard link");
    switch (archive_entry_filetype(entry)) {
      case AE_IFDIR:
        return base::MakeDirectories(folder_ / name);
      case AE_IFREG:
        return name.empty() ? Refuse(raw, "a file without a name") : WriteFile(name, entry);
      case AE_IFLNK:
        if (name.empty() || archive_entry_symlink(entry) == nullptr) return Refuse(raw, "no link");
        links_.emplace_back(name, archive_entry_symlink(entry));
        return absl::OkStatus();
      default:
        return Refuse(raw, "neither file, folder nor link");
    }
  }

  static absl::Status Refuse(absl::string_view name, absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("archive entry \"", name, "\" is ", why));
  }

  absl::Status WriteFile(const std::string& name, archive_entry* entry) {
    const fs::path path = folder_ / name;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
    const int mode = (archive_entry_perm(entry) & 0100) != 0 ? 0755 : 0644;
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                           base::Open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, mode));
    while (true) {
      const void* block = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      const int result = archive_read_data_block(reader_, &block, &size, &offset);
      if (result == ARCHIVE_EOF) break;
      if (result != ARCHIVE_OK) return ArchiveError(reader_);
      if (::lseek(fd.get(), offset, SEEK_SET) < 0) return base::ErrnoStatus(path.string());
      TUTTI_RETURN_IF_ERROR(base::WriteAll(
          fd.get(), absl::string_view(static_cast<const char*>(block), size), path.string()));
    }
    return absl::OkStatus();
  }

  absl::Status MakeLinks() {
    for (const auto& [name, target] : links_) {
      if (HasLinkAbove(name)) return Refuse(name, "below a link");
      if (!LeadsInsideByName(name, target)) return Refuse(name, "a link that leaves the folder");
      const fs::path path = folder_ / name;
      TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
      if (::symlink(target.c_str(), path.c_str()) != 0) {
        return base::ErrnoStatus(absl::StrCat("link ", path.string()));
      }
    }
    // A name that looks harmless may lead outside through other links: so look where it ends.
    for (const auto& [name, target] : links_) {
      TUTTI_ASSIGN_OR_RETURN(const bool inside, IsInside(folder_ / name));
      if (!inside) return Refuse(name, "a link that leaves the folder");
    }
    return absl::OkStatus();
  }

  bool HasLinkAbove(const fs::path& name) const {
    for (fs::path above = name.parent_path(); !above.empty(); above = above.parent_path()) {
      std::error_code error;
      if (fs::is_symlink(fs::symlink_status(folder_ / above, error))) return true;
    }
    return false;
  }

  static bool LeadsInsideByName(const fs::path& name, const fs::path& target) {
    if (target.is_absolute()) return false;
    const fs::path end = (name.parent_path() / target).lexically_normal();
    return end.empty() || *end.begin() != "..";
  }

  absl::StatusOr<bool> IsInside(const fs::path& path) const {
    std::error_code error;
    const fs::path root = fs::canonical(folder_, error);
    if (error) return base::ErrnoStatus(folder_.string(), error.value());
    const fs::path real = fs::weakly_canonical(path, error);
    if (error) return base::ErrnoStatus(path.string(), error.value());
    return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
  }

  archive* const reader_;
  const fs::path folder_;
  std::vector<std::pair<std::string, std::string>> links_;  // name, target
};

}  // namespace

absl::StatusOr<std::string> SafeRelativePath(absl::string_view name) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("archive entry \"", name.substr(0, 200), "\" ", why));
  };
  if (name.empty() || name.front() == '/') return refuse("has no relative path");
  if (name.size() >= PATH_MAX / 2) return refuse("has too long a name");
  if (name.find('\0') != absl::string_view::npos) return refuse("has a NUL in its name");
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(name, '/', absl::SkipEmpty())) {
    if (part == "..") return refuse("would leave the folder");
    if (part.size() > NAME_MAX) return refuse("has too long a name");
    if (part != ".") parts.push_back(part);
  }
  return absl::StrJoin(parts, "/");
}

absl::Status UnpackArchive(const fs::path& archive, const fs::path& folder) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder));
  const Reader reader(archive_read_new());
  archive_read_support_format_tar(reader.get());
  archive_read_support_filter_zstd(reader.get());
  if (archive_read_open_filename(reader.get(), archive.c_str(), 256 << 10) != ARCHIVE_OK) {
    return ArchiveError(reader.get());
  }
  const absl::Status status = Unpacking(reader.get(), folder).Run();
  if (!status.ok()) {
    base::RemoveTree(folder).IgnoreError();
    base::MakeDirectories(folder).IgnoreError();
  }
  return status;
}

}  // namespace tutti::launch
