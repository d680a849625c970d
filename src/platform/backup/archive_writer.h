// Writes the archive of a backup: tar, compressed by zstd, for its owner alone. The last entry,
// SHA256SUMS, has a line for each other one, "HEX  NAME", as `sha256sum --check` reads it; that of
// a link is of "-> TARGET". Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

struct archive;
struct archive_entry;

namespace tutti::backup {

inline constexpr char kSumsName[] = "SHA256SUMS";

// Returns the line of an entry in it.
std::string SumLine(absl::string_view hex, absl::string_view name);
// Returns the text whose hash stands for a link.
std::string LinkContent(absl::string_view target);

class ArchiveWriter {
 public:
  // Makes `file`.
  static absl::StatusOr<std::unique_ptr<ArchiveWriter>> Create(const std::filesystem::path& file);
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;
  ArchiveWriter& operator=(const ArchiveWriter&) = delete;

  absl::Status AddText(const std::string& name, absl::string_view text);
  // Adds a file, a link or a folder with all that lies in it, under that name; nothing if there is
  // none, or it goes meanwhile. If a file grows meanwhile, only what it held is added. What is
  // neither is left out.
  absl::Status Add(const std::string& name, const std::filesystem::path& path);
  // Leaves the file at `path`, which is absolute and without links, out of the folders that Add is
  // given from now on.
  void LeaveOut(std::filesystem::path path) { left_out_ = std::move(path); }
  // Ends the archive: once it returns OK the archive is whole and on the disk.
  absl::Status Finish();

 private:
  ArchiveWriter(std::filesystem::path file, base::UniqueFd fd);
  absl::Status AddFolder(const std::string& name, const std::filesystem::path& path);
  absl::Status AddFile(const std::string& name, const std::filesystem::path& path);
  absl::Status AddLink(const std::string& name, const std::filesystem::path& path);
  absl::Status Begin(archive_entry* entry);
  absl::Status CopyContent(int fd, int64_t bytes, const std::string& name);
  absl::Status Check(int code);

  const std::filesystem::path file_;
  const base::UniqueFd fd_;
  archive* const archive_;
  std::string sums_;
  std::filesystem::path left_out_;
};

}  // namespace tutti::backup
