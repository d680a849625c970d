// Keeps named, versioned assets: data, environments and components. `tutti data create --file
// data.yml` and its like keep them in HOME/KIND-assets.json, and `azureml:NAME:VERSION`,
// `azureml:NAME@latest` and `azureml:NAME` find them. Data stay where they are; of environments and
// components the files are kept in HOME/assets, as they were when the version was made.
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

// Models are kept by the service, whose registry they are in; references to them are read here.
enum class AssetKind { kData, kEnvironment, kComponent, kModel };

// Returns "data", "environment", "component", "model".
absl::string_view AssetKindName(AssetKind kind);

struct Asset {
  std::string name;
  std::string version;  // of a file: empty if it says none
  std::string type;     // uri_folder, …; conda_file, image, build; command, pipeline
  std::string path;     // absolute, or an address
  std::string digest;   // of the files that are kept; empty: nothing is kept
  std::string description;
  std::map<std::string, std::string> tags;
};

// Checks whether Azure ML takes it as a name or a version: letters, digits, "-", "_" and "."; the
// first a letter or digit; at most 255. InvalidArgument; `what` is what it would be.
absl::Status CheckAssetName(absl::string_view what, absl::string_view name);

// A job file names an asset by it: "azureml:NAME:1", "NAME@latest",
// "azureml://registries/R/components/NAME/versions/1".
struct AssetReference {
  std::string name;
  std::string version;  // empty: none, or the label "latest"; another label: "@LABEL"
};
AssetReference ReferenceOf(AssetKind kind, absl::string_view written);
// Returns NotFound for a label other than "latest".
absl::Status CheckLabel(AssetKind kind, const AssetReference& reference);

// Returns the id of a resource,
// "azureml:/subscriptions/…/workspaces/W/environments/NAME/versions/1", as it is written by name:
// "azureml:NAME:1". Another text stays as it is.
std::string NameOfId(absl::string_view written);

// All assets of one kind. Thread-compatible.
class Assets {
 public:
  explicit Assets(AssetKind kind) : kind_(kind) {}

  AssetKind kind() const { return kind_; }

  // Returns the next whole number.
  std::string NextVersion(absl::string_view name) const;
  // Adds an asset; without a version it gets the next one. AlreadyExists if the version is there
  // with another content: versions do not change, but what is said of them may.
  absl::StatusOr<Asset> Add(Asset asset);
  // Removes one version, or all if it is empty. NotFound.
  absl::Status Remove(absl::string_view name, absl::string_view version);

  // Finds an asset; without a version, the one that was added last. NotFound says which there are,
  // if the name is known; `known` tells that.
  absl::StatusOr<Asset> Find(const AssetReference& reference, bool* known) const;

  // Lists the versions of each name, in the order in which they were added.
  const std::map<std::string, std::vector<Asset>>& assets() const { return assets_; }

 private:
  AssetKind kind_;
  std::map<std::string, std::vector<Asset>> assets_;
};

// Returns the JSON of one asset, and of all versions of all: an array, as the file in HOME and
// `tutti data list` have it.
nlohmann::json JsonOf(const Asset& asset);
nlohmann::json JsonOf(const Assets& assets);

absl::StatusOr<Assets> AssetsFromJson(AssetKind kind, absl::string_view text,
                                      const std::string& file);
std::filesystem::path AssetsFile(const std::filesystem::path& home, AssetKind kind);
// Returns where the files of a version are kept, or of all of a name's.
std::filesystem::path AssetFolder(const std::filesystem::path& home, AssetKind kind,
                                  absl::string_view name, absl::string_view version = "");
absl::StatusOr<Assets> ReadAssets(const std::filesystem::path& home, AssetKind kind);
absl::Status WriteAssets(const std::filesystem::path& home, const Assets& assets);

}  // namespace tutti::spec
