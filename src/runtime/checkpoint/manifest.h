// Manifest reads a folder by its manifest: what is handed out has the size and SHA-256 that it
// states. Thread-safe once read.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::checkpoint {

class Manifest {
 public:
  // Returns the manifest of `folder`, which must be of `format` ("tutti-checkpoint", version 1).
  // NotFound when there is none; DataLoss when it is damaged; FailedPrecondition when it is of
  // another format or a later version. Errors name the file.
  static absl::StatusOr<Manifest> Read(const std::filesystem::path& folder,
                                       absl::string_view format);

  const nlohmann::json& head() const { return head_; }
  const std::filesystem::path& folder() const { return folder_; }

  // Returns the bytes of file `name`. DataLoss names it when it is missing from the folder or the
  // manifest, or is not the file that was written.
  absl::StatusOr<std::string> ReadFile(const std::string& name) const;
  // Returns the same, as JSON.
  absl::StatusOr<nlohmann::json> ReadJson(const std::string& name) const;

 private:
  struct File {
    uint64_t bytes;
    std::string sha256;
  };

  std::filesystem::path folder_;
  nlohmann::json head_;
  std::map<std::string, File> files_;
};

}  // namespace tutti::checkpoint
