// ModelContents keeps the files of registered models, each once:
//
//   models/files/sha256-HEX    a file by the hash of its bytes
//   models/trees/sha256-HEX/   a version's content by its digest (DigestOf), as jobs see it: links
//                              to those files
//   models/.incoming-…/        what is arriving (staging_folder.h)
//
// Invariant: what has one of these names is whole and on the disk. A tree that no row names, and a
// file that is in no tree, is left of a client or a process that did not come to the end, or is
// about to be named: it goes once it is old (RemoveFilesUnusedSince; RegisteredModels::RemoveOld).
// Thread-safe, but Place, RemoveTree and RemoveFilesUnusedSince are the caller's to order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/threads/janitor.h"
#include "platform/service/models/registered_model.h"
#include "platform/service/results/incoming_file.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {

class ModelContents {
 public:
  // Returns the digest of the tree that a path lies in, or is, of the service with that folder; ""
  // of another path.
  static std::string DigestAt(const std::filesystem::path& home, absl::string_view path);
  // Makes nothing yet.
  explicit ModelContents(const std::filesystem::path& home)
      : folder_(home / "models"), staging_(folder_) {}

  const std::filesystem::path& folder() const { return folder_; }

  // A file on its way in.
  class Upload {
   public:
    absl::Status Write(absl::string_view bytes) { return file_->Write(bytes); }
    // InvalidArgument if the bytes have another hash than their name says; nothing is kept then,
    // nor if this is not called. One that is there already stays, which trees may have.
    absl::Status Commit();

   private:
    friend class ModelContents;
    std::unique_ptr<IncomingFile> file_;
    std::string sha256_;
    std::filesystem::path sent_, path_;  // where it is whole, and where it goes
  };
  // Begins to receive the file of that name, "sha256:HEX", of so many bytes; -1: not known.
  // ResourceExhausted, here and in Upload, if the disk has no room.
  absl::StatusOr<Upload> Begin(absl::string_view name, int64_t bytes) const;
  // OK if the file "sha256:HEX" is here, which is marked as used now; else NotFound.
  absl::Status Find(absl::string_view name) const;
  // Takes the file at `path` in, and returns it as one of that name.
  absl::StatusOr<ModelFile> Adopt(const std::filesystem::path& path, std::string name) const;

  // Makes the tree of that digest from files that are here; OK if it is there. FailedPrecondition
  // names those that are not.
  absl::Status Place(const ModelContent& content, const std::string& digest) const;
  // Returns where it lies; of a model that is one file, named `file`, that file.
  std::filesystem::path TreeOf(absl::string_view digest, absl::string_view file = "") const;
  // Takes the tree away in one step, and removes it; OK if there is none.
  absl::Status RemoveTree(absl::string_view digest) const;
  // Removes those of the files that are in no tree and that nobody has sent or asked for since.
  absl::Status RemoveUnused(const ModelContent& content, absl::Time since) const;
  // Returns the digests of the trees that nothing has happened to since.
  std::vector<std::string> TreesUnusedSince(absl::Time since) const;
  // Does the same of all files.
  absl::Status RemoveFilesUnusedSince(absl::Time since) const;
  // Has removed what an earlier process was receiving, or did not get to remove.
  void RemoveEarlier(base::Janitor& janitor) const;

 private:
  absl::Status RemoveFile(const std::filesystem::path& path, absl::Time since) const;
  std::filesystem::path FileOf(absl::string_view sha256) const;
  absl::Status CheckFilesAreHere(const ModelContent& content) const;

  const std::filesystem::path folder_;
  const StagingFolder staging_;
};

}  // namespace tutti::service
