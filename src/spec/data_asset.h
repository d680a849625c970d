// Data by name and version: `tutti data create --file data.yml` (Azure ML's data schema) keeps
// where it lies in HOME/data-assets.json, and `azureml:NAME:VERSION`, `azureml:NAME@latest` and
// `azureml:NAME` find it. The data stay where they are.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::spec {

struct DataAsset {
  std::string name;
  std::string version;              // of a file: empty if it says none
  std::string type = "uri_folder";  // uri_folder, uri_file or mltable
  std::string path;                 // absolute, or an address
  std::string description;
  std::map<std::string, std::string> tags;
};

struct ReadDataResult {
  DataAsset asset;
  std::vector<std::string> warnings;
};

// Relative paths count from `base_directory`. InvalidArgument holds all errors, with their lines.
absl::StatusOr<ReadDataResult> ReadDataFile(absl::string_view text, absl::string_view file_name,
                                            const std::filesystem::path& base_directory);

// Whether Azure ML takes it as a name or a version: letters, digits, "-", "_" and "."; the first a
// letter or digit; at most 255. InvalidArgument; `what` is what it would be.
absl::Status CheckAssetName(absl::string_view what, absl::string_view name);

// Thread-compatible.
class DataAssets {
 public:
  // Without a version it gets the next whole number. AlreadyExists if the version is there with
  // another content: versions do not change.
  absl::StatusOr<DataAsset> Add(DataAsset asset);
  // One version, or all if it is empty. NotFound.
  absl::Status Remove(absl::string_view name, absl::string_view version);

  // By "azureml:NAME…" in any form of it; without a version, or with a label, the one that was
  // added last. NotFound says which there are, if the name is known; `known` tells that.
  absl::StatusOr<DataAsset> Find(absl::string_view address, bool* known) const;

  // By name, in the order in which they were added.
  const std::map<std::string, std::vector<DataAsset>>& assets() const { return assets_; }

 private:
  std::map<std::string, std::vector<DataAsset>> assets_;
};

// All versions, as HOME/data-assets.json and `tutti data list` have them: a JSON array.
nlohmann::json JsonOf(const DataAssets& assets);

absl::StatusOr<DataAssets> DataAssetsFromJson(absl::string_view text, const std::string& file);
absl::StatusOr<DataAssets> ReadDataAssets(const std::filesystem::path& home);
absl::Status WriteDataAssets(const std::filesystem::path& home, const DataAssets& assets);

}  // namespace tutti::spec
