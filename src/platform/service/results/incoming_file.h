// IncomingFile is a file that arrives in pieces: hidden under a temporary name until it is whole,
// then renamed to its place. Not thread-safe. Destroying it without Commit leaves nothing behind;
// what a killed process left the next one removes (staging_folder.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/hash.h"
#include "base/unique_fd.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {

class IncomingFile {
 public:
  // Begins a file of that path, which is below the parent of `staging`; its folder is made if it is
  // not there. ResourceExhausted if the disk is full, here and below. `hashed`: Commit compares its
  // hash.
  static absl::StatusOr<std::unique_ptr<IncomingFile>> Create(const std::filesystem::path& path,
                                                              const StagingFolder& staging,
                                                              bool hashed);
  ~IncomingFile();
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  // Takes room on the disk for all that is to come, where its file system can. ResourceExhausted if
  // there is too little.
  absl::Status Reserve(uint64_t bytes);
  // Called after each Write: that the sender lives.
  void OnWrite(std::function<void()> callback) { on_write_ = std::move(callback); }
  // Called by Commit, which ends with its error: whether the file is wanted still.
  void BeforeCommit(std::function<absl::Status()> check) { check_ = std::move(check); }
  // Called by Commit in place of MoveIntoPlace.
  void MoveBy(MoveResult move) { move_ = std::move(move); }
  absl::Status Write(absl::string_view bytes);
  // Calls fsync and rename. With `sha256`, of one that is hashed, (hexadecimal) first compares:
  // InvalidArgument if the content has another hash, and as MoveIntoPlace has it. Call once.
  absl::Status Commit(absl::string_view sha256 = "");

 private:
  IncomingFile(std::filesystem::path path, std::filesystem::path temporary, base::UniqueFd fd,
               bool hashed);
  const std::filesystem::path path_, temporary_;
  base::UniqueFd fd_;
  std::optional<base::Sha256> hash_;
  std::function<void()> on_write_;
  std::function<absl::Status()> check_;
  MoveResult move_ = MoveIntoPlace;
  bool committed_ = false;
};

}  // namespace tutti::service
