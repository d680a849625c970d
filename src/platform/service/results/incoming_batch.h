// IncomingBatch takes many small files that arrive together: a few are synced one by one, which has
// the disk empty its cache for each; of more the whole file system is, once, with what others have
// written there. Not thread-safe. Destroying it leaves nothing of what has no name yet; what a
// killed process left the next one removes (staging_folder.h).
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {

class IncomingBatch {
 public:
  // Begins a batch of files below the parent of `staging`.
  static absl::StatusOr<std::unique_ptr<IncomingBatch>> Create(StagingFolder staging);
  ~IncomingBatch();
  IncomingBatch(const IncomingBatch&) = delete;
  IncomingBatch& operator=(const IncomingBatch&) = delete;

  // Adds a whole file, whose folder is made. ResourceExhausted if the disk is full.
  absl::Status Add(const std::filesystem::path& path, absl::string_view bytes);
  // Returns a status for each file that was added, in their order: OK once the file is on the disk
  // and has its name, in place of an older one. If it fails as a whole, any number of the files may
  // be in place. Call it once.
  absl::StatusOr<std::vector<absl::Status>> Commit(const MoveResult& move = MoveIntoPlace);

 private:
  struct File {
    std::filesystem::path temporary, path;
  };
  explicit IncomingBatch(StagingFolder staging) : staging_(std::move(staging)) {}
  // Returns the folder in which files for `parent` arrive; makes both.
  absl::StatusOr<std::filesystem::path> ArrivalFor(const std::filesystem::path& parent);
  static absl::Status SyncOne(const File& file);
  absl::Status SyncAll() const;

  const StagingFolder staging_;
  std::vector<File> files_;
  // Where files arrive: by the folder that they go to, and all, by the folder that each is in.
  std::map<std::filesystem::path, std::filesystem::path> arrivals_, folders_;
};

}  // namespace tutti::service
