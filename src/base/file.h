// Reads, writes and syncs files: whole reads, atomic writes, durable appends. All errors name the
// path. Functions are thread-safe; two writers of one path are the caller's to order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace tutti::base {

// Reads the whole file. NotFound if there is none; ResourceExhausted if it is larger than
// `max_bytes`.
absl::StatusOr<std::string> ReadFile(const std::filesystem::path& path,
                                     uint64_t max_bytes = uint64_t{1} << 31);

// Writes a file whole: readers see the old content or the new, never a part, also after a crash:
// temporary file in the same folder, fsync, rename, fsync of the folder.
absl::Status WriteFileAtomic(const std::filesystem::path& path, absl::string_view content,
                             int mode = 0644);

// Does the same for what is written at each start, which must be possible on a full disk: a file
// that has that content is left alone, and where there is no room for a second file it is written
// over in place (a reader may see a part of it for a moment).
absl::Status UpdateFile(const std::filesystem::path& path, absl::string_view content,
                        int mode = 0644);

// Does the same without fsync: as WriteFileAtomic if only processes die; after a power failure the
// file may be gone or empty.
absl::Status ReplaceFile(const std::filesystem::path& path, absl::string_view content,
                         int mode = 0644);

// Does the same for a file whose readers make do with a part of it for a moment: where there is no
// room for a second file it is written over in place, if it takes no more blocks than it has.
absl::Status ReplaceOrOverwrite(const std::filesystem::path& path, absl::string_view content,
                                int mode = 0644);

// Writes all of `content` at the descriptor's position; continues after short writes and EINTR.
absl::Status WriteAll(int fd, absl::string_view content, absl::string_view name);

// Writes all of `content` at the end of a file that was opened with O_APPEND and that nobody else
// appends to. Where that fails, as on a full disk, no part of it stays: a reader never sees half a
// line.
absl::Status AppendWhole(int fd, absl::string_view content, absl::string_view name);

// Cuts a longer file to `size` bytes. A file that is not longer is not touched: ext4 finds blocks
// at once, at close, for what was truncated, be it of nothing.
absl::Status Shorten(int fd, int64_t size, absl::string_view name);

// Calls open(2) with O_CLOEXEC.
absl::StatusOr<UniqueFd> Open(const std::filesystem::path& path, int flags, int mode = 0644);

// Returns whether a folder is a Python environment, of venv or of conda.
bool IsPythonEnvironment(const std::filesystem::path& folder);

// Makes a folder and its parents; OK if it is there. The error is that of the first that could not
// be made.
absl::Status MakeDirectories(const std::filesystem::path& path);
absl::Status SyncDirectory(const std::filesystem::path& path);
// Removes a tree, also with folders of mode 0555; OK if there is none (remove_tree.h).
absl::Status RemoveTree(const std::filesystem::path& path);

// Sets when it was last changed to now, as a mark of its use. Nothing is said if that cannot be.
void Touch(const std::filesystem::path& path);

// Returns how many bytes an unprivileged process can still write on the file system of `path`.
absl::StatusOr<uint64_t> FreeBytes(const std::filesystem::path& path);

// A fresh folder under $TMPDIR (or /tmp), removed with all it holds when the object goes.
class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(absl::string_view prefix = "tutti");
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace tutti::base
