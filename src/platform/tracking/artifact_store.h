// ArtifactStore keeps the files that runs leave through the service (mlflow-artifacts:), below one
// folder, by the paths that clients give them.
//
//   artifacts/EXPERIMENT/RUN/artifacts/…   as MLflow's own server lays them out
//   incoming/                              what is arriving: hidden until it is whole
//
// Invariant: a file has its name once all of it is on the disk, and no path leads out of the
// folder. What a killed process left of uploads is removed when it is opened. Thread-safe; two
// uploads of one path: the last that ends stays.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/threads/janitor.h"
#include "base/unique_fd.h"
#include "platform/tracking/values/artifact_path.h"

namespace tutti::tracking {

// ArtifactUpload is one file that arrives. Not thread-safe. Destroying it without Commit leaves
// nothing behind.
class ArtifactUpload {
 public:
  // `path`: of the file, relative to `root`. `check_room`: see ArtifactStore.
  ArtifactUpload(std::filesystem::path temporary, std::filesystem::path root,
                 const std::filesystem::path& path, base::UniqueFd fd,
                 std::function<absl::Status(uint64_t)> check_room);
  ~ArtifactUpload();
  ArtifactUpload(const ArtifactUpload&) = delete;
  ArtifactUpload& operator=(const ArtifactUpload&) = delete;

  // Takes room on the disk for all that is to come, where its file system can. ResourceExhausted if
  // others need what is left then.
  absl::Status Reserve(uint64_t bytes);
  // ResourceExhausted if the disk is full; without Reserve also if others need what is left.
  absl::Status Write(absl::string_view bytes);
  // Syncs it and gives it its name. InvalidArgument where there is a folder of that name, or a file
  // on the way to it. Call once.
  absl::Status Commit();

 private:
  const std::filesystem::path temporary_, root_, path_;
  base::UniqueFd fd_;
  const std::function<absl::Status(uint64_t)> check_room_;
  bool is_reserved_ = false;
  uint64_t unchecked_ = 0;  // bytes written since the room was looked at
  bool committed_ = false;
};

struct ArtifactEntry {
  std::string name;  // within the folder that was listed
  bool is_folder = false;
  int64_t bytes = 0;
};

class ArtifactStore {
 public:
  // Makes the folder. `check_room`: ResourceExhausted if the disk has no room for so many bytes
  // more; may be null.
  static absl::StatusOr<std::unique_ptr<ArtifactStore>> Open(
      std::filesystem::path folder, std::function<absl::Status(uint64_t)> check_room);

  // Lists a folder by name; nothing of one that is not there. InvalidArgument for a path that is
  // none; OutOfRange if it has more than 100,000 entries.
  absl::StatusOr<std::vector<ArtifactEntry>> List(absl::string_view path) const;
  // Returns where a file lies. NotFound.
  absl::StatusOr<std::filesystem::path> Find(absl::string_view path) const;
  // Begins a file of that size, -1 if it is not known.
  absl::StatusOr<std::unique_ptr<ArtifactUpload>> Begin(absl::string_view path, int64_t bytes);
  // Removes a file, or a folder with all that it holds; OK if there is none.
  absl::Status Remove(absl::string_view path);

 private:
  ArtifactStore(std::filesystem::path folder, std::function<absl::Status(uint64_t)> check_room)
      : folder_(std::move(folder)), check_room_(std::move(check_room)) {}
  std::filesystem::path root() const { return folder_ / "artifacts"; }
  std::filesystem::path incoming() const { return folder_ / "incoming"; }

  const std::filesystem::path folder_;
  const std::function<absl::Status(uint64_t)> check_room_;
  std::atomic<uint64_t> uploads_ = 0;
  base::Janitor janitor_;
};

}  // namespace tutti::tracking
