#include "platform/tracking/artifact_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::tracking {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEntries = 100'000;
constexpr uint64_t kBytesBetweenChecks = uint64_t{4} << 20;
constexpr char kRemoved[] = "removed-";

// Returns the error of a name that cannot exist, since it is a folder, or a folder of its path is a
// file.
absl::Status NameError(const fs::path& path, int error) {
  if (error == ENOTDIR || error == EISDIR || error == EEXIST || error == ENOTEMPTY ||
      error == ENAMETOOLONG) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Invalid artifact path: ", base::ErrnoStatus(path.filename().native(), error).message()));
  }
  return base::ErrnoStatus(absl::StrCat("write ", path.native()), error);
}

absl::Status MakeParent(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  return error ? NameError(path.parent_path(), error.value()) : absl::OkStatus();
}

absl::StatusOr<ArtifactEntry> EntryOf(const fs::directory_entry& entry) {
  struct stat status = {};
  if (::lstat(entry.path().c_str(), &status) != 0) return base::ErrnoStatus("stat");
  return ArtifactEntry{entry.path().filename().native(), S_ISDIR(status.st_mode),
                       static_cast<int64_t>(status.st_size)};
}

}  // namespace

ArtifactUpload::ArtifactUpload(fs::path temporary, fs::path root, const fs::path& path,
                               base::UniqueFd fd, std::function<absl::Status(uint64_t)> check_room)
    : temporary_(std::move(temporary)),
      root_(std::move(root)),
      path_(root_ / path),
      fd_(std::move(fd)),
      check_room_(std::move(check_room)) {}

ArtifactUpload::~ArtifactUpload() {
  if (!committed_) ::unlink(temporary_.c_str());
}

absl::Status ArtifactUpload::Reserve(uint64_t bytes) {
  if (bytes > 0 && ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0) {
    absl::Status status =
        base::ErrnoStatus(absl::StrCat("taking room for ", bytes, " bytes of ", path_.native()));
    return absl::IsResourceExhausted(status) ? status : absl::OkStatus();
  }
  is_reserved_ = true;
  // Others may have taken theirs meanwhile.
  return check_room_ ? check_room_(0) : absl::OkStatus();
}

absl::Status ArtifactUpload::Write(absl::string_view bytes) {
  unchecked_ += bytes.size();
  if (!is_reserved_ && check_room_ && unchecked_ >= kBytesBetweenChecks) {
    TUTTI_RETURN_IF_ERROR(check_room_(bytes.size()));
    unchecked_ = 0;
  }
  return base::WriteAll(fd_.get(), bytes, path_.native());
}

absl::Status ArtifactUpload::Commit() {
  if (::fsync(fd_.get()) != 0) return base::ErrnoStatus(absl::StrCat("fsync ", path_.native()));
  TUTTI_RETURN_IF_ERROR(MakeParent(path_));
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return NameError(path_, errno);
  committed_ = true;
  // Folders on the way to it may be new.
  for (fs::path folder = path_.parent_path(); folder != root_; folder = folder.parent_path()) {
    TUTTI_RETURN_IF_ERROR(base::SyncDirectory(folder));
  }
  return base::SyncDirectory(root_);
}

absl::StatusOr<std::unique_ptr<ArtifactStore>> ArtifactStore::Open(
    fs::path folder, std::function<absl::Status(uint64_t)> check_room) {
  std::unique_ptr<ArtifactStore> store(new ArtifactStore(std::move(folder), std::move(check_room)));
  std::error_code error;
  if (fs::exists(store->incoming(), error)) {
    TUTTI_RETURN_IF_ERROR(store->janitor_.RenameAndRemove(
        store->incoming(), absl::StrCat(kRemoved, base::RandomHex(4), "-")));
  }
  for (const auto& entry : fs::directory_iterator(store->folder_, error)) {
    const std::string name = entry.path().filename().native();
    if (name.rfind(kRemoved, 0) == 0) store->janitor_.Remove(entry.path());
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(store->root()));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(store->incoming()));
  return store;
}

absl::StatusOr<std::vector<ArtifactEntry>> ArtifactStore::List(absl::string_view path) const {
  TUTTI_ASSIGN_OR_RETURN(const fs::path relative, ArtifactPath(path));
  std::vector<ArtifactEntry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(root() / relative, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entries.size() == kMostEntries) {
      return absl::OutOfRangeError(absl::StrCat("The folder '", path, "' has more than ",
                                                kMostEntries, " entries: list those below it."));
    }
    // One that was removed meanwhile is none.
    if (auto found = EntryOf(*entry); found.ok()) entries.push_back(*std::move(found));
  }
  std::sort(entries.begin(), entries.end(),
            [](const ArtifactEntry& a, const ArtifactEntry& b) { return a.name < b.name; });
  return entries;
}

absl::StatusOr<fs::path> ArtifactStore::Find(absl::string_view path) const {
  TUTTI_ASSIGN_OR_RETURN(const fs::path relative, ArtifactPath(path));
  const fs::path file = root() / relative;
  struct stat status = {};
  if (::lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode)) return file;
  return absl::NotFoundError(absl::StrCat("No such artifact: '", path, "'"));
}

absl::StatusOr<std::unique_ptr<ArtifactUpload>> ArtifactStore::Begin(absl::string_view path,
                                                                     int64_t bytes) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path relative, ArtifactPath(path));
  if (relative.empty()) return absl::InvalidArgumentError("Invalid path");
  const auto size = static_cast<uint64_t>(std::max<int64_t>(bytes, 0));
  if (check_room_) TUTTI_RETURN_IF_ERROR(check_room_(size));
  const fs::path temporary = incoming() / absl::StrCat(uploads_++);
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd fd,
                         base::Open(temporary, O_WRONLY | O_CREAT | O_EXCL, 0644));
  auto upload =
      std::make_unique<ArtifactUpload>(temporary, root(), relative, std::move(fd), check_room_);
  if (bytes >= 0) TUTTI_RETURN_IF_ERROR(upload->Reserve(size));
  return upload;
}

absl::Status ArtifactStore::Remove(absl::string_view path) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path relative, ArtifactPath(path));
  if (relative.empty()) return absl::InvalidArgumentError("Invalid path");
  const fs::path target = root() / relative;
  struct stat status = {};
  if (::lstat(target.c_str(), &status) != 0) return absl::OkStatus();
  if (!S_ISDIR(status.st_mode)) {
    return ::unlink(target.c_str()) == 0 ? absl::OkStatus() : NameError(target, errno);
  }
  const fs::path aside = folder_ / absl::StrCat(kRemoved, base::RandomHex(8));
  if (std::rename(target.c_str(), aside.c_str()) != 0) return NameError(target, errno);
  janitor_.Remove(aside);
  return absl::OkStatus();
}

}  // namespace tutti::tracking
