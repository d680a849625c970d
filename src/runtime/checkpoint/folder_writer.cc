#include "runtime/checkpoint/folder_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"

namespace tutti::checkpoint {
namespace {

// `from` becomes `to`. Where an older `to` is then, "" if there was none: it changes names with
// `from`, so that one of the two is under the name at every instant; where the file system cannot
// swap (NFS), it becomes FOLDER.old, and a crash between the two renames leaves it alone there.
absl::StatusOr<std::filesystem::path> Replace(const std::filesystem::path& from,
                                              const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return std::filesystem::path();
  if (errno != ENOTEMPTY && errno != EEXIST) return base::ErrnoStatus("rename " + from.string());
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    return from;
  }
  const std::filesystem::path old = to.string() + ".old";
  TUTTI_RETURN_IF_ERROR(FolderWriter::CheckMayReplace(old));
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(old));
  if (::rename(to.c_str(), old.c_str()) != 0 || ::rename(from.c_str(), to.c_str()) != 0) {
    return base::ErrnoStatus("rename " + to.string());
  }
  return old;
}

}  // namespace

FolderWriter::FolderWriter(std::filesystem::path folder)
    : folder_(std::move(folder)), temporary_(folder_.string() + ".tmp") {}

FolderWriter::FolderWriter(FolderWriter&& other) noexcept
    : folder_(std::move(other.folder_)),
      temporary_(std::move(other.temporary_)),
      files_(std::move(other.files_)),
      bytes_(other.bytes_),
      open_(std::exchange(other.open_, false)) {}

FolderWriter::~FolderWriter() {
  // What cannot be removed now is removed by the next Create.
  if (open_) base::RemoveTree(temporary_).IgnoreError();
}

// Nothing is there, or what an earlier writer of this kind left: never a folder of something else.
absl::Status FolderWriter::CheckMayReplace(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error) || std::filesystem::is_empty(folder, error) ||
      std::filesystem::exists(folder / "manifest.json", error)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(folder.string(),
                   " exists and has no manifest.json: it is not for tutti to "
                   "replace; remove it or choose another place"));
}

absl::StatusOr<FolderWriter> FolderWriter::Create(std::filesystem::path folder) {
  if (!folder.has_filename()) folder = folder.parent_path();  // "model/"
  FolderWriter writer(std::move(folder));
  TUTTI_RETURN_IF_ERROR(CheckMayReplace(writer.folder_));
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(writer.temporary_));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(writer.temporary_));
  return writer;
}

absl::Status FolderWriter::Add(absl::string_view name,
                               absl::FunctionRef<absl::Status(Append)> content) {
  const std::filesystem::path path = temporary_ / std::string(name);
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd file, base::Open(path, O_WRONLY | O_CREAT | O_EXCL));
  base::Sha256 hash;
  uint64_t bytes = 0;
  TUTTI_RETURN_IF_ERROR(content([&](absl::string_view piece) -> absl::Status {
    TUTTI_RETURN_IF_ERROR(base::WriteAll(file.get(), piece, path.string()));
    hash.Update(piece);
    bytes += piece.size();
    return absl::OkStatus();
  }));
  if (::fsync(file.get()) != 0) return base::ErrnoStatus("fsync " + path.string());
  files_[std::string(name)] = {{"bytes", bytes}, {"sha256", base::Hex(hash.Finish())}};
  bytes_ += bytes;
  return absl::OkStatus();
}

absl::Status FolderWriter::Add(absl::string_view name, absl::string_view content) {
  return Add(name, [&](Append append) { return append(content); });
}

absl::StatusOr<uint64_t> FolderWriter::Commit(nlohmann::json head) {
  head["files"] = std::move(files_);
  TUTTI_RETURN_IF_ERROR(
      base::WriteFileAtomic(temporary_ / "manifest.json", head.dump(/*indent=*/2) + "\n"));
  TUTTI_ASSIGN_OR_RETURN(const std::filesystem::path replaced, Replace(temporary_, folder_));
  open_ = false;
  const std::filesystem::path parent = folder_.parent_path();
  TUTTI_RETURN_IF_ERROR(base::SyncDirectory(parent.empty() ? "." : parent));
  // What was replaced, now that what takes its place is safe. What stays of it is in nobody's way:
  // the next writer of this name removes it.
  if (!replaced.empty()) base::RemoveTree(replaced).IgnoreError();
  return bytes_;
}

}  // namespace tutti::checkpoint
