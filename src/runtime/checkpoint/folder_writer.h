// FolderWriter writes a folder that appears under its name whole and on disk, or not at all
// (docs/formats/checkpoint.md).
//
// Files are written into FOLDER.tmp and synced, the manifest that names them all comes last, and a
// rename gives the folder its name: at no instant is there a folder with a manifest and a file less
// than it says. One writer per folder; thread-compatible.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::checkpoint {

class FolderWriter {
 public:
  // Checks the folder; FailedPrecondition when `folder` exists and is not the work of a
  // FolderWriter: it would not be replaced. Create says the same; ask before hours of work whose
  // result goes there.
  static absl::Status CheckMayReplace(const std::filesystem::path& folder);

  // Removes what a writer that was killed left in FOLDER.tmp.
  static absl::StatusOr<FolderWriter> Create(std::filesystem::path folder);
  FolderWriter(FolderWriter&& other) noexcept;
  // Without Commit, nothing of the folder stays.
  ~FolderWriter();

  // Appends bytes to the file that is being added.
  using Append = absl::FunctionRef<absl::Status(absl::string_view bytes)>;
  // Writes a file of what `content` appends, as it is appended, and syncs it. An error of `content`
  // is that of Add; the folder is then not to be committed.
  absl::Status Add(absl::string_view name, absl::FunctionRef<absl::Status(Append)> content);
  absl::Status Add(absl::string_view name, absl::string_view content);

  // Writes the manifest, `head` plus the files, and renames; takes the place of an older folder of
  // the same name in one step. Returns the bytes of all files but the manifest.
  absl::StatusOr<uint64_t> Commit(nlohmann::json head);

 private:
  explicit FolderWriter(std::filesystem::path folder);

  std::filesystem::path folder_, temporary_;
  nlohmann::json files_ = nlohmann::json::object();
  uint64_t bytes_ = 0;
  bool open_ = true;
};

}  // namespace tutti::checkpoint
