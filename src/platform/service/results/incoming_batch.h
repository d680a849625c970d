// IncomingBatch takes many small files that arrive together: a few are synced one by one, which has
// the disk empty its cache for each; of more the whole file system is, once, with what others have
// written there. Not thread-safe. Destroying it leaves nothing of what has no name yet; what a
// killed process left is in the staging folder.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::service {

class IncomingBatch {
 public:
  // Begins a batch; `staging`: as IncomingFile has it.
  static absl::StatusOr<std::unique_ptr<IncomingBatch>> Create(
      const std::filesystem::path& staging);
  ~IncomingBatch();
  IncomingBatch(const IncomingBatch&) = delete;
  IncomingBatch& operator=(const IncomingBatch&) = delete;

  // Adds a whole file, whose folder is made. ResourceExhausted if the disk is full.
  absl::Status Add(const std::filesystem::path& path, absl::string_view bytes);
  // Returns a status for each file that was added, in their order: OK once the file is on the disk
  // and has its name, in place of an older one. If it fails as a whole, any number of the files may
  // be in place. Call it once.
  absl::StatusOr<std::vector<absl::Status>> Commit();

 private:
  struct File {
    std::filesystem::path temporary, path;
  };
  explicit IncomingBatch(std::filesystem::path folder) : folder_(std::move(folder)) {}
  static absl::Status SyncOne(const File& file);
  absl::Status SyncAll() const;

  const std::filesystem::path folder_;
  std::vector<File> files_;
  std::set<std::filesystem::path> parents_;
};

}  // namespace tutti::service
