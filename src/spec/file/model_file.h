// Reads the file that defines a model: Azure ML's model schema.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

struct ModelFile {
  std::string name, version;  // as the file says; empty where it says none
  std::string type = "custom_model";
  std::string description, stage;
  std::map<std::string, std::string> tags, properties;
  std::string path;              // absolute, of a file or folder of this machine; or
  std::string job, path_of_job;  // what a job has left: "outputs/model"
  std::vector<std::string> warnings;
};

// Reads the text of a file, whose paths count from `base`. InvalidArgument holds all errors, with
// their lines. It is not checked that the path exists.
absl::StatusOr<ModelFile> ReadModelText(absl::string_view text, absl::string_view file_name,
                                        const std::filesystem::path& base);
// Reads it from disk, relative to the current folder.
absl::StatusOr<ModelFile> ReadModelFile(const std::string& file);

}  // namespace tutti::spec
