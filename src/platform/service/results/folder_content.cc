#include "platform/service/results/folder_content.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

absl::Status LinkFile(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (!error) return absl::OkStatus();
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return base::ErrnoStatus(absl::StrCat("link ", from.string()), error.value());
  return absl::OkStatus();
}

bool Clone(const fs::path& from, const fs::path& to) {
  const auto source = base::Open(from, O_RDONLY);
  struct stat status = {};
  if (!source.ok() || ::fstat(source->get(), &status) != 0) return false;
  const auto target = base::Open(to, O_WRONLY | O_CREAT | O_EXCL, 0600);
  return target.ok() && ::ioctl(target->get(), FICLONE, source->get()) == 0 &&
         ::fchmod(target->get(), status.st_mode) == 0;
}

absl::Status CopyFile(const fs::path& from, const fs::path& to) {
  if (Clone(from, to)) return absl::OkStatus();
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return base::ErrnoStatus(absl::StrCat("copy ", from.string()), error.value());
  return absl::OkStatus();
}

// A PutFile makes one file of another.
using PutFile = absl::Status(const fs::path& from, const fs::path& to);

absl::Status PutFolder(const fs::path& from, const fs::path& to, PutFile* put) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsArriving(entry->path().filename().native())) continue;  // half a file is no content
    const fs::path target = to / entry->path().filename();
    std::error_code ignored;
    if (entry->is_symlink(ignored)) continue;  // results hold none; what others put there stays
    TUTTI_RETURN_IF_ERROR(entry->is_directory(ignored) ? PutFolder(entry->path(), target, put)
                                                       : put(entry->path(), target));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", from.string()), error.value());
  return absl::OkStatus();
}

absl::Status PutContent(const fs::path& from, const fs::path& to, PutFile* put) {
  fs::path unfinished = to;
  unfinished += ".unfinished";
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(unfinished));
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(to));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to.parent_path()));
  std::error_code error;
  TUTTI_RETURN_IF_ERROR(fs::is_directory(from, error) ? PutFolder(from, unfinished, put)
                                                      : put(from, unfinished));
  fs::rename(unfinished, to, error);
  if (error) return base::ErrnoStatus(absl::StrCat("rename to ", to.string()), error.value());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> DigestOf(const fs::path& path, FileDigests& digests) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    TUTTI_ASSIGN_OR_RETURN(const std::string digest, digests.Of(path));
    return absl::StrCat("file:", digest);
  }
  std::map<std::string, std::string> files;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    if (IsArriving(entry->path().filename().native())) {
      entry.disable_recursion_pending();
      continue;
    }
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    TUTTI_ASSIGN_OR_RETURN(files[entry->path().lexically_relative(path).string()],
                           digests.Of(entry->path()));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", path.string()), error.value());
  base::Sha256 hash;
  for (const auto& [name, digest] : files) hash.Update(absl::StrCat(digest, " ", name, "\n"));
  return absl::StrCat("folder:", base::Hex(hash.Finish()));
}

absl::Status LinkContent(const fs::path& from, const fs::path& to) {
  return PutContent(from, to, &LinkFile);
}

absl::Status CopyContent(const fs::path& from, const fs::path& to) {
  return PutContent(from, to, &CopyFile);
}

}  // namespace tutti::service
