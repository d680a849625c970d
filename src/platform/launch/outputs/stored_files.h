// StoredFiles remembers which files of an output this node has put into its store: a line of JSON
// each in a file of the allocation's folder, appended once the store has it, so that a launcher
// that follows one that was killed sends none of them again. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace tutti::launch {

// How a file was when it was looked at; with another content it is another value, as far as the
// disk tells: a program can set `modified` back, and none can `changed`. Times in nanoseconds since
// 1970, by the disk's clock.
struct FileState {
  int64_t bytes = 0;
  int64_t modified = 0;
  int64_t changed = 0;  // of content, owner, mode or name
  uint64_t inode = 0;

  bool operator==(const FileState&) const = default;
};

// Returns the state of a file, links followed. An errno's status, which names the file.
absl::StatusOr<FileState> StateOf(const std::filesystem::path& file);

struct StoredFile {
  FileState state;
  std::string sha256;  // of the content, hexadecimal
  std::string etag;    // what the store calls that version; may be empty
  double stored = 0;   // when the store had it, in seconds since 1970
  // When its content was read for the hash, in nanoseconds since 1970. A write so soon before that
  // may have the same `changed` as one after it: see IsCertain.
  int64_t hashed = 0;
  int times = 1;  // how often it was put; 0: the store had it before the job (earlier_files.h)
};

// Returns whether another content would have given another state: not if the file was written to
// less than 2 s before it was read.
bool IsCertain(const StoredFile& stored);

// The most files of one output; what a job writes beyond them must be archives.
inline constexpr size_t kMostStoredFiles = 1'000'000;

class StoredFiles {
 public:
  // Returns what is remembered in `file`, by path, without changing it; nothing if it is absent.
  static absl::StatusOr<std::map<std::string, StoredFile>> Read(const std::filesystem::path& file);

  // Reads what is remembered in `file`, which may be absent. A last line that a crash cut off is
  // left out. A file that has many lines of the same paths is written anew.
  static absl::StatusOr<StoredFiles> Open(const std::filesystem::path& file);

  // Returns whether the store has the file of that path as it is now. If not, its content may still
  // be the same, as where it was renamed or touched.
  bool Has(const std::string& path, const FileState& state) const;
  // Returns what the store has of the path; null if it has nothing.
  const StoredFile* Find(const std::string& path) const;
  // Returns how often it was put.
  int Times(const std::string& path) const;
  // Remembers the state that the file of that path has now, with the content that the store has.
  absl::Status Renew(const std::string& path, const FileState& state, int64_t hashed);
  // Remembers that the store has it. The file is written before the call returns, not synced: what
  // a power loss takes is put again.
  absl::Status Add(const std::string& path, StoredFile stored);
  // Remembers likewise what the store had before the job, which has not put it.
  absl::Status AddEarlier(const std::string& path, StoredFile stored);

  const std::map<std::string, StoredFile>& all() const { return files_; }  // by path

 private:
  explicit StoredFiles(base::UniqueFd fd) : fd_(std::move(fd)) {}
  absl::Status Append(const std::string& path, const StoredFile& stored);
  base::UniqueFd fd_;
  std::map<std::string, StoredFile> files_;
};

}  // namespace tutti::launch
