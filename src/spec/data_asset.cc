#include "spec/data_asset.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/status.h"
#include "spec/data_map.h"
#include "spec/diagnostics.h"
#include "spec/job_data.h"
#include "spec/json_fields.h"
#include "spec/mapping_reader.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr char kAssetsFile[] = "data-assets.json";
constexpr uint64_t kLargestAssetsFile = 64 << 20;
constexpr std::array<absl::string_view, 3> kAssetTypes = {"uri_folder", "uri_file", "mltable"};

void CheckName(const YamlNode::Entry* entry, absl::string_view key, absl::string_view value,
               Diagnostics& diagnostics) {
  if (entry == nullptr) return;
  const absl::Status fits = CheckAssetName(key, value);
  if (!fits.ok()) diagnostics.Error(entry->line, fits.message());
}

void ReadAssetPath(const YamlNode::Entry& entry, const std::filesystem::path& base,
                   DataAsset& asset, Diagnostics& diagnostics) {
  if (IsAddress(asset.path)) return;
  const auto local = LocalPath(asset.path, base);
  if (local.ok()) {
    asset.path = *local;
  } else {
    diagnostics.Error(entry.line, local.status().message());
  }
}

bool SameContent(const DataAsset& a, const DataAsset& b) {
  return a.path == b.path && a.type == b.type;
}

std::string NextVersion(const std::vector<DataAsset>& versions) {
  int64_t most = 0, number = 0;
  for (const DataAsset& asset : versions) {
    if (absl::SimpleAtoi(asset.version, &number)) most = std::max(most, number);
  }
  return absl::StrCat(most + 1);
}

json JsonOfAsset(const DataAsset& asset) {
  return {{"name", asset.name}, {"version", asset.version},         {"type", asset.type},
          {"path", asset.path}, {"description", asset.description}, {"tags", asset.tags}};
}

absl::StatusOr<DataAsset> AssetOf(const json& document, std::string path) {
  DataAsset asset;
  JsonFields fields(document, std::move(path), Missing::kKeepsDefault);
  fields.Read("name", asset.name);
  fields.Read("version", asset.version);
  fields.Read("type", asset.type);
  fields.Read("path", asset.path);
  fields.Read("description", asset.description);
  fields.Read("tags", asset.tags);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return asset;
}

}  // namespace

absl::Status CheckAssetName(absl::string_view what, absl::string_view name) {
  const bool fits = !name.empty() && name.size() <= 255 && absl::ascii_isalnum(name[0]) &&
                    std::all_of(name.begin(), name.end(), [](unsigned char c) {
                      return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
                    });
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      what,
      " must be of letters, digits, \"-\", \"_\" and \".\", must begin with a letter or "
      "digit, and has at most 255 characters"));
}

absl::StatusOr<ReadDataResult> ReadDataFile(absl::string_view text, absl::string_view file_name,
                                            const std::filesystem::path& base_directory) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  Diagnostics diagnostics(file_name);
  MappingReader reader(*root, "a data file", diagnostics, {"data", ""});
  DataAsset asset;
  std::string unused;
  reader.Text("$schema", unused);
  const YamlNode::Entry* const name = reader.Text("name", asset.name);
  CheckName(name, "name", asset.name, diagnostics);
  const YamlNode::Entry* const version = reader.Text("version", asset.version);
  CheckName(version, "version", asset.version, diagnostics);
  reader.Text("description", asset.description);
  reader.TextMap("tags", asset.tags);
  reader.Choice("type", kAssetTypes, asset.type);
  const YamlNode::Entry* const path = reader.Text("path", asset.path);
  reader.Finish();
  if (name == nullptr) diagnostics.Error(root->line, "the key \"name\" is missing");
  if (path == nullptr || asset.path.empty()) {
    diagnostics.Error(path == nullptr ? root->line : path->line,
                      "the key \"path\" is missing: say where the data lie");
  } else {
    ReadAssetPath(*path, base_directory, asset, diagnostics);
  }
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  return ReadDataResult{std::move(asset), diagnostics.warnings()};
}

absl::StatusOr<DataAsset> DataAssets::Add(DataAsset asset) {
  std::vector<DataAsset>& versions = assets_[asset.name];
  if (asset.version.empty()) asset.version = NextVersion(versions);
  const auto found = std::find_if(versions.begin(), versions.end(), [&](const DataAsset& known) {
    return known.version == asset.version;
  });
  if (found == versions.end()) {
    versions.push_back(asset);
  } else if (!SameContent(*found, asset)) {
    return absl::AlreadyExistsError(
        absl::StrCat("data ", asset.name, ":", asset.version, " is ", found->type, " ", found->path,
                     ", and a version does not change: take another, or delete it first"));
  } else {
    *found = asset;  // what is said of it may change
  }
  return asset;
}

absl::Status DataAssets::Remove(absl::string_view name, absl::string_view version) {
  const auto found = assets_.find(std::string(name));
  if (found == assets_.end()) return absl::NotFoundError(absl::StrCat("there is no data ", name));
  std::vector<DataAsset>& versions = found->second;
  const size_t before = versions.size();
  versions.erase(std::remove_if(versions.begin(), versions.end(),
                                [&](const DataAsset& asset) {
                                  return version.empty() || asset.version == version;
                                }),
                 versions.end());
  if (versions.size() == before) {
    return absl::NotFoundError(absl::StrCat("data ", name, " has no version ", version));
  }
  if (versions.empty()) assets_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<DataAsset> DataAssets::Find(absl::string_view address, bool* known) const {
  *known = false;
  const std::string canonical = CanonicalAddress(address);
  absl::string_view rest = canonical;
  if (!absl::ConsumePrefix(&rest, "azureml:") || absl::StartsWith(rest, "//")) {
    return absl::NotFoundError("no name of data");
  }
  const absl::string_view name = rest.substr(0, rest.find('/'));
  const auto found = assets_.find(std::string(name));
  if (found == assets_.end()) return absl::NotFoundError(absl::StrCat("no data ", name));
  *known = true;
  rest.remove_prefix(name.size());
  if (!absl::ConsumePrefix(&rest, "/versions/")) return found->second.back();
  std::vector<std::string> versions;
  for (const DataAsset& asset : found->second) {
    if (asset.version == rest) return asset;
    versions.push_back(asset.version);
  }
  return absl::NotFoundError(absl::StrCat("data ", name, " has no version ", rest.substr(0, 80),
                                          ", but ", absl::StrJoin(versions, ", ")));
}

absl::StatusOr<DataAssets> DataAssetsFromJson(absl::string_view text, const std::string& file) {
  TUTTI_ASSIGN_OR_RETURN(const json document, ParseJsonObject(text, file));
  JsonFields fields(document, "", Missing::kIsAnError);
  DataAssets assets;
  const json* const list = fields.Array("assets");
  TUTTI_RETURN_IF_ERROR(base::Annotate(fields.Finish(), file));
  for (size_t i = 0; i < list->size(); ++i) {
    auto asset = AssetOf((*list)[i], absl::StrCat("assets[", i, "]"));
    TUTTI_RETURN_IF_ERROR(base::Annotate(asset.status(), file));
    TUTTI_RETURN_IF_ERROR(assets.Add(*std::move(asset)).status());
  }
  return assets;
}

absl::StatusOr<DataAssets> ReadDataAssets(const std::filesystem::path& home) {
  const std::string file = (home / kAssetsFile).string();
  const auto text = base::ReadFile(file, kLargestAssetsFile);
  if (absl::IsNotFound(text.status())) return DataAssets();
  TUTTI_RETURN_IF_ERROR(text.status());
  return DataAssetsFromJson(*text, file);
}

json JsonOf(const DataAssets& assets) {
  json list = json::array();
  for (const auto& [name, versions] : assets.assets()) {
    for (const DataAsset& asset : versions) list.push_back(JsonOfAsset(asset));
  }
  return list;
}

absl::Status WriteDataAssets(const std::filesystem::path& home, const DataAssets& assets) {
  const json document = {{"assets", JsonOf(assets)}};
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(home));
  return base::WriteFileAtomic(home / kAssetsFile, absl::StrCat(document.dump(1), "\n"));
}

}  // namespace tutti::spec
