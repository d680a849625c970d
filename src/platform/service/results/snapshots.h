// Snapshots keeps the code archives of jobs, each under the hash of its own bytes:
// DIRECTORY/sha256-HEX. What is there is whole and has that hash; two uploads of the same archive
// are one file. Thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "platform/service/results/incoming_file.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {

class Snapshots {
 public:
  explicit Snapshots(const std::filesystem::path& directory)
      : directory_(directory), staging_(directory) {}

  const std::filesystem::path& directory() const { return directory_; }
  // Returns the file of "sha256:HEX", which is marked as used now. InvalidArgument if that is no
  // such name; NotFound if it is not here.
  absl::StatusOr<std::filesystem::path> Find(absl::string_view name) const;

  // An archive on its way in.
  class Upload {
   public:
    absl::Status Write(absl::string_view bytes) { return file_->Write(bytes); }
    // Commits the file; InvalidArgument if the bytes have another hash than their name says;
    // nothing is kept then.
    absl::Status Commit() { return file_->Commit(hex_); }

   private:
    friend class Snapshots;
    std::unique_ptr<IncomingFile> file_;
    std::string hex_;
  };
  absl::StatusOr<Upload> Begin(absl::string_view name) const;
  // Has removed what an earlier process was receiving.
  void RemoveEarlier(base::Janitor& janitor) const { staging_.RemoveEarlier(janitor); }

 private:
  std::filesystem::path directory_;
  StagingFolder staging_;
};

}  // namespace tutti::service
