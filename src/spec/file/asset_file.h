// Reads the files that define named assets: Azure ML's data, environment and component schemas.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/asset.h"
#include "spec/file/job_file.h"
#include "spec/site/site.h"
#include "spec/types/job.h"

namespace tutti::spec {

struct AssetFile {
  Asset asset;  // name and version as the file says; empty where it says none
  // Files and folders that have to be kept with it, itself first: what it reads, its code. They are
  // absolute. Empty for data, which stay where they are.
  std::vector<std::filesystem::path> parts;
  std::vector<std::filesystem::path> builds;  // and the folders of its images' builds
  std::vector<std::string> warnings;
  Environment environment;  // of an environment's file: what jobs that name it get
};

// Reads `file` (relative to `folder`, which is absolute) as a job that names it would; what a job
// gives to a component's inputs is left open. InvalidArgument holds all errors, with their lines.
// It is not checked that paths exist.
absl::StatusOr<AssetFile> ReadAssetFile(AssetKind kind, const std::string& file,
                                        const std::filesystem::path& folder, const Site& site,
                                        const ReadFileFunction& read_file);
// Reads it from disk, relative to the current folder; also checks that paths exist.
absl::StatusOr<AssetFile> ReadAssetFile(AssetKind kind, const std::string& file, const Site& site);

}  // namespace tutti::spec
