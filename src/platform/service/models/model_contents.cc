#include "platform/service/models/model_contents.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/folder.h"
#include "base/status.h"
#include "platform/service/results/disk_room.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kNamePrefix = "sha256-";
constexpr absl::string_view kGone = ".gone-";
constexpr absl::string_view kSent = ".sent-";  // whole, and not yet by its name
constexpr size_t kBytesOfGoneName = 8;
constexpr size_t kCopyAtOnce = 1 << 20;
constexpr size_t kMostMissingNamed = 5;  // of the files that are missing

absl::StatusOr<std::string> HexOfFile(absl::string_view name) {
  absl::string_view hex = name;
  const bool valid = absl::ConsumePrefix(&hex, "sha256:") && hex.size() == 64 &&
                     std::all_of(hex.begin(), hex.end(), [](unsigned char c) {
                       return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                     });
  if (valid) return std::string(hex);
  return absl::InvalidArgumentError(
      absl::StrCat("a model's file is named sha256: and 64 lower-case hexadecimal digits, not \"",
                   name.substr(0, 200), "\""));
}

absl::Status CopyInto(int from, const fs::path& path, IncomingFile& to) {
  std::string buffer(kCopyAtOnce, '\0');
  while (true) {
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::ErrnoStatus(absl::StrCat("read ", path.native()));
    if (count == 0) return absl::OkStatus();
    TUTTI_RETURN_IF_ERROR(to.Write(absl::string_view(buffer.data(), static_cast<size_t>(count))));
  }
}

// Syncs the folder and those in it.
absl::Status SyncFolders(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_directory(ignored)) continue;
    TUTTI_RETURN_IF_ERROR(base::SyncDirectory(entry->path()));
  }
  if (error) return base::ErrnoStatus(folder.native(), error.value());
  return base::SyncDirectory(folder);
}

std::optional<struct stat> LstatOf(const fs::path& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

}  // namespace

std::string ModelContents::DigestAt(const fs::path& home, absl::string_view path) {
  const std::string trees = (home / "models" / "trees" / std::string(kNamePrefix)).native();
  if (!absl::ConsumePrefix(&path, trees)) return "";
  return std::string(path.substr(0, path.find('/')));
}

fs::path ModelContents::FileOf(absl::string_view sha256) const {
  return folder_ / "files" / absl::StrCat(kNamePrefix, sha256);
}

fs::path ModelContents::TreeOf(absl::string_view digest, absl::string_view file) const {
  const fs::path tree = folder_ / "trees" / absl::StrCat(kNamePrefix, digest);
  return file.empty() ? tree : tree / std::string(file);
}

absl::Status ModelContents::Upload::Commit() {
  TUTTI_RETURN_IF_ERROR(file_->Commit(sha256_));
  int moved = ::renameat2(AT_FDCWD, sent_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE);
  if (moved != 0 && errno == EEXIST) {
    base::Touch(path_);
    ::unlink(sent_.c_str());
    return absl::OkStatus();
  }
  // A file system that cannot: NFS.
  if (moved != 0 && errno == EINVAL) moved = std::rename(sent_.c_str(), path_.c_str());
  if (moved != 0) return base::ErrnoStatus(absl::StrCat("rename to ", path_.native()));
  return base::SyncDirectory(path_.parent_path());
}

absl::StatusOr<ModelContents::Upload> ModelContents::Begin(absl::string_view name,
                                                           int64_t bytes) const {
  Upload upload;
  TUTTI_ASSIGN_OR_RETURN(upload.sha256_, HexOfFile(name));
  const auto size = static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder_));
  TUTTI_RETURN_IF_ERROR(CheckRoom(folder_, size));
  upload.path_ = FileOf(upload.sha256_);
  upload.sent_ =
      upload.path_.parent_path() / absl::StrCat(kSent, base::RandomHex(kBytesOfGoneName));
  TUTTI_ASSIGN_OR_RETURN(upload.file_,
                         IncomingFile::Create(upload.sent_, staging_, /*hashed=*/true));
  TUTTI_RETURN_IF_ERROR(upload.file_->Reserve(size));
  return upload;
}

absl::Status ModelContents::Find(absl::string_view name) const {
  TUTTI_ASSIGN_OR_RETURN(const std::string hex, HexOfFile(name));
  const fs::path path = FileOf(hex);
  base::Touch(path);
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("there is no file ", name, " of a model"));
}

absl::StatusOr<ModelFile> ModelContents::Adopt(const fs::path& path, std::string name) const {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd from,
                         base::Open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat status = {};
  if (::fstat(from.get(), &status) != 0) return base::ErrnoStatus(path.native());
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path.native(), " is no file"));
  }
  ModelFile file{.path = std::move(name), .bytes = static_cast<uint64_t>(status.st_size)};
  TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest hash, base::Sha256OfFile(path));
  file.sha256 = base::Hex(hash);
  const std::string by_hash = absl::StrCat("sha256:", file.sha256);
  if (Find(by_hash).ok()) return file;
  TUTTI_ASSIGN_OR_RETURN(Upload upload, Begin(by_hash, status.st_size));
  TUTTI_RETURN_IF_ERROR(CopyInto(from.get(), path, *upload.file_));
  TUTTI_RETURN_IF_ERROR(upload.Commit());
  return file;
}

absl::Status ModelContents::CheckFilesAreHere(const ModelContent& content) const {
  std::set<std::string> missing;
  for (const ModelFile& file : content.files) {
    const auto status = LstatOf(FileOf(file.sha256));
    if (!status) {
      missing.insert(file.path);
    } else if (static_cast<uint64_t>(status->st_size) != file.bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("file ", file.path, " has ", status->st_size, " bytes, not ", file.bytes));
    }
  }
  if (missing.empty()) return absl::OkStatus();
  std::string named;
  size_t count = 0;
  for (const std::string& path : missing) {
    if (++count > kMostMissingNamed) break;
    absl::StrAppend(&named, named.empty() ? "" : ", ", path);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("files of the model have not been sent (PUT /v1/model-files/sha256:…): ", named,
                   missing.size() > kMostMissingNamed
                       ? absl::StrCat(" and ", missing.size() - kMostMissingNamed, " more")
                       : ""));
}

absl::Status ModelContents::Place(const ModelContent& content, const std::string& digest) const {
  const fs::path tree = TreeOf(digest);
  if (LstatOf(tree)) {
    base::Touch(tree);
    return absl::OkStatus();
  }
  TUTTI_RETURN_IF_ERROR(CheckFilesAreHere(content));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(tree.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(const fs::path arriving, staging_.NewPathFor(tree.parent_path()));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(arriving));
  absl::Cleanup remove = [&] { base::RemoveTree(arriving).IgnoreError(); };
  for (const ModelFile& file : content.files) {
    const fs::path path = arriving / file.path;
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
    if (::link(FileOf(file.sha256).c_str(), path.c_str()) != 0) {
      return base::ErrnoStatus(absl::StrCat("link ", path.native()));
    }
  }
  TUTTI_RETURN_IF_ERROR(SyncFolders(arriving));
  TUTTI_RETURN_IF_ERROR(MoveIntoPlace(arriving, tree));
  std::move(remove).Cancel();
  return base::SyncDirectory(tree.parent_path());
}

absl::Status ModelContents::RemoveTree(absl::string_view digest) const {
  const fs::path tree = TreeOf(digest);
  const fs::path gone =
      tree.parent_path() / absl::StrCat(kGone, base::RandomHex(kBytesOfGoneName), "-", digest);
  if (std::rename(tree.c_str(), gone.c_str()) == 0) return base::RemoveTree(gone);
  return errno == ENOENT ? absl::OkStatus()
                         : base::ErrnoStatus(absl::StrCat("rename ", tree.native()));
}

absl::Status ModelContents::RemoveFile(const fs::path& path, absl::Time since) const {
  const auto status = LstatOf(path);
  if (!status || !S_ISREG(status->st_mode) || status->st_nlink > 1) return absl::OkStatus();
  if (absl::TimeFromTimespec(status->st_mtim) >= since) return absl::OkStatus();
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("remove ", path.native()));
}

absl::Status ModelContents::RemoveUnused(const ModelContent& content, absl::Time since) const {
  absl::Status first;
  for (const ModelFile& file : content.files) first.Update(RemoveFile(FileOf(file.sha256), since));
  return first;
}

std::vector<std::string> ModelContents::TreesUnusedSince(absl::Time since) const {
  std::vector<std::string> digests;
  for (const std::string& name : base::NamesIn(folder_ / "trees")) {
    absl::string_view digest = name;
    if (!absl::ConsumePrefix(&digest, kNamePrefix)) continue;
    const auto status = LstatOf(folder_ / "trees" / name);
    if (status && absl::TimeFromTimespec(status->st_mtim) < since) digests.emplace_back(digest);
  }
  return digests;
}

absl::Status ModelContents::RemoveFilesUnusedSince(absl::Time since) const {
  absl::Status first;
  for (const std::string& name : base::NamesIn(folder_ / "files")) {
    first.Update(RemoveFile(folder_ / "files" / name, since));
  }
  return first;
}

void ModelContents::RemoveEarlier(base::Janitor& janitor) const {
  staging_.RemoveEarlier(janitor);
  for (const std::string& name : base::NamesIn(folder_ / "trees")) {
    if (absl::StartsWith(name, kGone)) janitor.Remove(folder_ / "trees" / name);
  }
}

}  // namespace tutti::service
