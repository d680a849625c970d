// Packs the code that a job runs into one archive: tar, compressed by zstd. Equal content gives
// equal bytes and so the same hash, whoever packs it and when: entries are sorted, without times
// and owners, with one of two modes (0644, or 0755 for what its owner may execute and for folders).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tutti::client {

// The file by which `tutti job download` marks the folder that it makes: results are no code.
inline constexpr char kDownloadMark[] = ".tutti-download";

// ExcludedPath is a file or folder that an ignore file, or the mark of a download, leaves out.
struct ExcludedPath {
  std::string name;  // from the code folder; of a folder with "/" behind it
  std::string by;    // that file, from the code folder: "../.gitignore"
  int files = 0;     // that were counted
  uint64_t bytes = 0;
  bool has_more = false;  // than were counted
};

struct Snapshot {
  std::string hash;  // "sha256:…" of the archive's bytes
  int files = 0;
  uint64_t content_bytes = 0;
  uint64_t archive_bytes = 0;
  std::vector<std::string> secret_files;  // those that often hold secrets: .env, private keys
  std::vector<ExcludedPath> left_out;     // the largest first; of each 10,000 files are counted
};

// Packs `code`, a folder's content or a single file, into the file `archive`. Leaves out .git,
// __pycache__, Python environments and what ignore files name (ignore.h). Symbolic links are kept
// when they lead to a place in the folder. InvalidArgument, naming the file: a link that leaves the
// folder, the folder "/", something that is neither file, folder nor link (each of the first ten on
// a line of its own), a file that changed while it was read.
//
// Each of `includes`, files and folders, stands beside the code's content under its own name; two
// of one name are InvalidArgument. With them `code` may be empty.
absl::StatusOr<Snapshot> PackCode(const std::filesystem::path& code,
                                  const std::filesystem::path& archive,
                                  const std::vector<std::filesystem::path>& includes = {});

// Returns what PackCode would find wrong without reading the files.
absl::Status CheckCode(const std::filesystem::path& code,
                       const std::vector<std::filesystem::path>& includes = {});

// Returns whether `code` is the user's home folder, and no ignore file there says what stays.
bool IsUnfilteredHome(const std::filesystem::path& code);

struct CodeSize {
  int files = 0;
  uint64_t bytes = 0;
};

// Counts the files and bytes that PackCode would take of a folder. Stops looking once it has found
// `most_files`, or files of `most_bytes`: there may be millions. What cannot be read is passed
// over.
CodeSize MeasureCode(const std::filesystem::path& folder, int most_files, uint64_t most_bytes);

// Lists what PackCode takes of `code`, folders too, by names relative to it; sorted. For a single
// file that is its own name. Errors are the same.
absl::StatusOr<std::vector<std::string>> FilesOfCode(const std::filesystem::path& code);

// Lists in the same way what the build of an image gets of its folder: all but what its
// .containerignore, else its .dockerignore, else its .amlignore names. Links are not looked at.
absl::StatusOr<std::vector<std::string>> FilesOfBuild(const std::filesystem::path& folder);

}  // namespace tutti::client
