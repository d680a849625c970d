#include "platform/storage/transfer/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

constexpr char kThere = '1', kMissing = '0';
constexpr int64_t kDiskBlock = 512;  // of st_blocks

fs::path PartOf(const fs::path& folder, const StoredObject& object) {
  return folder / kPartsName / base::Hex(base::Sha256Of(object.path)).substr(0, 32);
}

std::string HeaderOf(const StoredObject& object, int64_t range_bytes, absl::string_view boot_id) {
  const nlohmann::json header = {{"path", object.path},
                                 {"bytes", object.bytes},
                                 {"etag", object.etag},
                                 {"range", range_bytes},
                                 {"boot", boot_id}};
  return absl::StrCat(header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

absl::Status WriteAt(int fd, int64_t offset, std::span<const char> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("write ", path.string()));
    bytes = bytes.subspan(n);
    offset += n;
  }
  return absl::OkStatus();
}

absl::Status ReadAt(int fd, int64_t offset, std::span<char> out, const fs::path& path) {
  while (!out.empty()) {
    const ssize_t n = ::pread(fd, out.data(), out.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", path.string()));
    if (n == 0) return absl::DataLossError(absl::StrCat(path.string(), " has become shorter"));
    out = out.subspan(n);
    offset += n;
  }
  return absl::OkStatus();
}

absl::Status Rename(const fs::path& path, const fs::path& target) {
  if (::rename(path.c_str(), target.c_str()) == 0) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("rename ", path.string(), " to ", target.string()));
}

}  // namespace

int64_t PartFile::RangeBytes(int64_t range) const {
  return std::min(range_bytes_, bytes_ - OffsetOf(range));
}

absl::StatusOr<bool> PartFile::TakeOver(absl::string_view header) {
  const auto text = base::ReadFile(ranges_path_);
  struct stat part = {};
  if (!text.ok() || !absl::StartsWith(*text, header) ||
      text->size() != header.size() + was_there_.size() || ::fstat(file_.get(), &part) != 0) {
    return false;
  }
  for (size_t i = 0; i < was_there_.size(); ++i) {
    const int64_t end = OffsetOf(i) + RangeBytes(i);
    was_there_[i] = (*text)[header.size() + i] == kThere && end <= part.st_size;
  }
  TUTTI_ASSIGN_OR_RETURN(ranges_, base::Open(ranges_path_, O_WRONLY));
  return true;
}

// Reserves the space of all ranges at once, in one piece of the disk, if the file system can; else
// the space is taken as ranges arrive. On a full disk nothing stays reserved, so that others have
// no less room meanwhile.
absl::Status PartFile::Reserve() {
  // A file system may fill the disk before it says so.
  const auto free = base::FreeBytes(path_);
  if (free.ok() && *free < static_cast<uint64_t>(bytes_)) {
    return base::ErrnoStatus(absl::StrCat("allocate ", path_.string()), ENOSPC);
  }
  int failed = 0;
  do {
    failed = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, 0, bytes_) == 0 ? 0 : errno;
  } while (failed == EINTR);
  if (failed != ENOSPC && failed != EDQUOT) return absl::OkStatus();
  if (::ftruncate(file_.get(), 0) != 0) {
    return base::ErrnoStatus(absl::StrCat("truncate ", path_.string()));
  }
  return base::ErrnoStatus(absl::StrCat("allocate ", path_.string()), failed);
}

absl::StatusOr<std::unique_ptr<PartFile>> PartFile::Open(const fs::path& folder,
                                                         const StoredObject& object,
                                                         int64_t range_bytes,
                                                         absl::string_view boot_id) {
  std::unique_ptr<PartFile> part(new PartFile);
  part->path_ = PartOf(folder, object);
  part->ranges_path_ = absl::StrCat(part->path_.string(), ".ranges");
  part->bytes_ = object.bytes;
  part->range_bytes_ = range_bytes;
  part->was_there_.assign((object.bytes + range_bytes - 1) / range_bytes, false);
  TUTTI_ASSIGN_OR_RETURN(part->file_, base::Open(part->path_, O_RDWR | O_CREAT, 0644));
  const std::string header = HeaderOf(object, range_bytes, boot_id);
  part->header_bytes_ = static_cast<int64_t>(header.size());
  TUTTI_ASSIGN_OR_RETURN(const bool taken, part->TakeOver(header));
  if (taken) return part;
  // The bytes of another version do not count, nor the space that they take.
  if (::ftruncate(part->file_.get(), 0) != 0) {
    return base::ErrnoStatus(absl::StrCat("truncate ", part->path_.string()));
  }
  TUTTI_RETURN_IF_ERROR(part->Reserve());
  TUTTI_RETURN_IF_ERROR(base::ReplaceFile(
      part->ranges_path_, absl::StrCat(header, std::string(part->was_there_.size(), kMissing))));
  TUTTI_ASSIGN_OR_RETURN(part->ranges_, base::Open(part->ranges_path_, O_WRONLY));
  return part;
}

absl::Status PartFile::Write(int64_t range, std::span<const char> bytes) {
  TUTTI_RETURN_IF_ERROR(WritePiece(OffsetOf(range), bytes));
  return NoteWritten(range);
}

absl::Status PartFile::WritePiece(int64_t offset, std::span<const char> bytes) {
  absl::MutexLock lock(&writing_);
  return WriteAt(file_.get(), offset, bytes, path_);
}

// The disk begins with it meanwhile, so that there is little to wait for at the end.
absl::Status PartFile::NoteWritten(int64_t range) {
  ::sync_file_range(file_.get(), OffsetOf(range), RangeBytes(range), SYNC_FILE_RANGE_WRITE);
  return WriteAt(ranges_.get(), header_bytes_ + range, {&kThere, 1}, ranges_path_);
}

absl::Status PartFile::ReadBack(int64_t offset, std::span<char> out) const {
  return ReadAt(file_.get(), offset, out, path_);
}

absl::Status PartFile::Finish(const fs::path& target) {
  TUTTI_RETURN_IF_ERROR(Rename(path_, target));
  ::unlink(ranges_path_.c_str());
  file_.reset();
  ranges_.reset();
  return absl::OkStatus();
}

void PartFile::Discard() {
  ::unlink(ranges_path_.c_str());
  ::unlink(path_.c_str());
  file_.reset();  // else the object that is fetched anew needs its room twice
  ranges_.reset();
}

absl::Status WriteWhole(const fs::path& folder, const StoredObject& object,
                        std::span<const char> bytes, const fs::path& target) {
  const fs::path path = PartOf(folder, object);
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd file,
                         base::Open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  TUTTI_RETURN_IF_ERROR(WriteAt(file.get(), 0, bytes, path));
  return Rename(path, target);
}

absl::StatusOr<bool> LinkWhole(const fs::path& folder, const StoredObject& object,
                               const fs::path& source, const fs::path& target) {
  const fs::path path = PartOf(folder, object);
  ::unlink(path.c_str());
  if (::link(source.c_str(), path.c_str()) != 0) {
    if (errno == ENOSPC || errno == EDQUOT) return base::ErrnoStatus(path.native());
    return false;
  }
  // If the target is that file already, the system leaves both names.
  TUTTI_RETURN_IF_ERROR(Rename(path, target));
  return true;
}

// Meanwhile the part may have become the file.
absl::Status ReadFetched(const fs::path& folder, const StoredObject& object, int64_t offset,
                         std::span<char> out) {
  auto file = base::Open(PartOf(folder, object), O_RDONLY);
  if (!file.ok()) file = base::Open(folder / object.path, O_RDONLY);
  if (!file.ok()) return file.status();
  return ReadAt(file->get(), offset, out, object.path);
}

int64_t BytesOfParts(const fs::path& folder) {
  std::error_code error;
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder / kPartsName, error)) {
    struct stat part = {};
    if (::stat(entry.path().c_str(), &part) == 0) bytes += part.st_blocks * kDiskBlock;
  }
  return bytes;
}

}  // namespace tutti::storage
