#include "platform/service/folder_content.h"

#include <map>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

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

absl::Status LinkFolder(const fs::path& from, const fs::path& to) {
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to));
  std::error_code error;
  for (fs::directory_iterator entry(from, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path target = to / entry->path().filename();
    std::error_code ignored;
    if (entry->is_symlink(ignored)) continue;  // results hold none; what others put there stays
    TUTTI_RETURN_IF_ERROR(entry->is_directory(ignored) ? LinkFolder(entry->path(), target)
                                                       : LinkFile(entry->path(), target));
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", from.string()), error.value());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> DigestOf(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest digest, base::Sha256OfFile(path));
    return absl::StrCat("file:", base::Hex(digest));
  }
  std::map<std::string, std::string> files;
  for (fs::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored)) continue;
    TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest digest, base::Sha256OfFile(entry->path()));
    files[entry->path().lexically_relative(path).string()] = base::Hex(digest);
  }
  if (error) return base::ErrnoStatus(absl::StrCat("read ", path.string()), error.value());
  base::Sha256 hash;
  for (const auto& [name, digest] : files) hash.Update(absl::StrCat(digest, " ", name, "\n"));
  return absl::StrCat("folder:", base::Hex(hash.Finish()));
}

absl::Status LinkContent(const fs::path& from, const fs::path& to) {
  fs::path unfinished = to;
  unfinished += ".unfinished";
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(unfinished));
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(to));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to.parent_path()));
  std::error_code error;
  TUTTI_RETURN_IF_ERROR(fs::is_directory(from, error) ? LinkFolder(from, unfinished)
                                                      : LinkFile(from, unfinished));
  fs::rename(unfinished, to, error);
  if (error) return base::ErrnoStatus(absl::StrCat("rename to ", to.string()), error.value());
  return absl::OkStatus();
}

}  // namespace tutti::service
