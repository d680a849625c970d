#include "spec/data/asset.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/closest.h"
#include "spec/data/home_list.h"
#include "spec/json/json_fields.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr char kAssetsKey[] = "assets";
constexpr std::array<absl::string_view, 5> kCollections = {"computes", "environments", "data",
                                                           "components", "models"};

constexpr std::array<absl::string_view, 1> kLabels = {"latest"};

// Their names in addresses: azureml://registries/R/COLLECTION/NAME.
absl::string_view CollectionOf(AssetKind kind) {
  return kind == AssetKind::kData          ? "data"
         : kind == AssetKind::kEnvironment ? "environments"
         : kind == AssetKind::kComponent   ? "components"
                                           : "models";
}

// Files that are kept are compared by their content: they may come from another folder.
bool SameContent(const Asset& a, const Asset& b) {
  if (!a.digest.empty() || !b.digest.empty()) return a.digest == b.digest;
  return a.path == b.path && a.type == b.type;
}

absl::StatusOr<Asset> AssetOf(const json& document, std::string path) {
  Asset asset;
  JsonFields fields(document, std::move(path), Missing::kKeepsDefault);
  fields.Read("name", asset.name);
  fields.Read("version", asset.version);
  fields.Read("type", asset.type);
  fields.Read("path", asset.path);
  fields.Read("digest", asset.digest);
  fields.Read("description", asset.description);
  fields.Read("tags", asset.tags);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  return asset;
}

// As a reference keeps it.
std::string VersionOfLabel(absl::string_view label) {
  return label == kLabels[0] ? "" : absl::StrCat("@", label);
}

}  // namespace

absl::string_view AssetKindName(AssetKind kind) {
  return kind == AssetKind::kData          ? "data"
         : kind == AssetKind::kEnvironment ? "environment"
         : kind == AssetKind::kComponent   ? "component"
                                           : "model";
}

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

std::string NameOfId(absl::string_view written) {
  absl::string_view rest = absl::StripAsciiWhitespace(written);
  absl::ConsumePrefix(&rest, "azureml:");
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  const bool is_id =
      parts.size() > 2 && parts[0].empty() && absl::EqualsIgnoreCase(parts[1], "subscriptions");
  std::string name;
  for (size_t i = 1; is_id && i + 1 < parts.size(); i += 2) {  // KEY/VALUE/KEY/VALUE
    if (!name.empty()) {
      const char sign = parts[i] == "labels" ? '@' : ':';
      return absl::StrCat(name, absl::string_view(&sign, 1), parts[i + 1]);
    }
    const bool named =
        std::find(kCollections.begin(), kCollections.end(), parts[i]) != kCollections.end();
    if (named) name = absl::StrCat("azureml:", parts[i + 1]);
  }
  return name.empty() ? std::string(written) : name;
}

AssetReference ReferenceOf(AssetKind kind, absl::string_view written) {
  written = absl::StripAsciiWhitespace(written);
  const std::string by_name = NameOfId(written);
  absl::string_view rest = by_name;
  if (absl::ConsumePrefix(&rest, "azureml://")) {
    const std::vector<std::string> parts = absl::StrSplit(rest, '/');
    size_t at = 0;  // behind where it is kept, a registry or the one workspace there is
    while (at + 2 < parts.size()) {
      const std::string word = absl::AsciiStrToLower(parts[at]);
      if (word != "subscriptions" && word != "resourcegroups" && word != "workspaces" &&
          word != "registries") {
        break;
      }
      at += 2;
    }
    if (at == 0 || at + 1 >= parts.size() || parts[at] != CollectionOf(kind)) {
      return {std::string(written), ""};
    }
    if (at + 3 >= parts.size()) return {parts[at + 1], ""};
    return {parts[at + 1], parts[at + 2] == "versions" ? parts[at + 3]
                           : parts[at + 2] == "labels" ? VersionOfLabel(parts[at + 3])
                                                       : ""};
  }
  absl::ConsumePrefix(&rest, "azureml:");
  const size_t end = std::min(rest.find_first_of("@:"), rest.size());
  const std::string name(rest.substr(0, end));
  if (end == rest.size()) return {name, ""};
  const absl::string_view behind = rest.substr(end + 1);
  return {name, rest[end] == ':' ? std::string(behind) : VersionOfLabel(behind)};
}

absl::Status CheckLabel(AssetKind kind, const AssetReference& reference) {
  absl::string_view label = reference.version;
  if (!absl::ConsumePrefix(&label, "@")) return absl::OkStatus();
  label = label.substr(0, 80);
  const std::string meant = base::DidYouMean(label, kLabels);
  return absl::NotFoundError(absl::StrCat(AssetKindName(kind), " ", reference.name.substr(0, 255),
                                          " has no label \"", label, "\"",
                                          meant.empty() ? ", but latest" : meant));
}

std::string Assets::NextVersion(absl::string_view name) const {
  int64_t most = 0, number = 0;
  if (const auto found = assets_.find(std::string(name)); found != assets_.end()) {
    for (const Asset& asset : found->second) {
      if (absl::SimpleAtoi(asset.version, &number)) most = std::max(most, number);
    }
  }
  return absl::StrCat(most + 1);
}

absl::StatusOr<Asset> Assets::Add(Asset asset) {
  if (asset.version.empty()) asset.version = NextVersion(asset.name);
  std::vector<Asset>& versions = assets_[asset.name];
  const auto found = std::find_if(versions.begin(), versions.end(), [&](const Asset& known) {
    return known.version == asset.version;
  });
  if (found == versions.end()) {
    versions.push_back(asset);
    return asset;
  }
  if (!SameContent(*found, asset)) {
    return absl::AlreadyExistsError(
        absl::StrCat(AssetKindName(kind_), " ", asset.name, ":", asset.version,
                     found->digest.empty() ? absl::StrCat(" is ", found->type, " ", found->path)
                                           : " is there with other files",
                     ", and a version does not change: take another, or delete it first"));
  }
  asset.path = found->path;
  *found = asset;
  return asset;
}

absl::Status Assets::Remove(absl::string_view name, absl::string_view version) {
  const auto found = assets_.find(std::string(name));
  if (found == assets_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no ", AssetKindName(kind_), " ", name));
  }
  std::vector<Asset>& versions = found->second;
  const size_t removed = std::erase_if(
      versions, [&](const Asset& asset) { return version.empty() || asset.version == version; });
  if (removed == 0) {
    return absl::NotFoundError(
        absl::StrCat(AssetKindName(kind_), " ", name, " has no version ", version));
  }
  if (versions.empty()) assets_.erase(found);
  return absl::OkStatus();
}

absl::StatusOr<Asset> Assets::Find(const AssetReference& reference, bool* known) const {
  const auto found = assets_.find(reference.name);
  *known = found != assets_.end();
  if (!*known) {
    return absl::NotFoundError(absl::StrCat("there is no ", AssetKindName(kind_), " ",
                                            absl::string_view(reference.name).substr(0, 255)));
  }
  TUTTI_RETURN_IF_ERROR(CheckLabel(kind_, reference));
  if (reference.version.empty()) return found->second.back();
  std::vector<std::string> versions;
  for (const Asset& asset : found->second) {
    if (asset.version == reference.version) return asset;
    versions.push_back(asset.version);
  }
  return absl::NotFoundError(absl::StrCat(
      AssetKindName(kind_), " ", reference.name, " has no version ",
      absl::string_view(reference.version).substr(0, 80), ", but ", absl::StrJoin(versions, ", ")));
}

json JsonOf(const Asset& asset) {
  return {{"name", asset.name}, {"version", asset.version}, {"type", asset.type},
          {"path", asset.path}, {"digest", asset.digest},   {"description", asset.description},
          {"tags", asset.tags}};
}

json JsonOf(const Assets& assets) {
  json list = json::array();
  for (const auto& [name, versions] : assets.assets()) {
    for (const Asset& asset : versions) list.push_back(JsonOf(asset));
  }
  return list;
}

namespace {

// Returns the function that adds the entries of a list.
EachEntry AddTo(Assets& assets) {
  return [&assets](const json& entry, std::string location) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(Asset asset, AssetOf(entry, std::move(location)));
    return assets.Add(std::move(asset)).status();
  };
}

}  // namespace

absl::StatusOr<Assets> AssetsFromJson(AssetKind kind, absl::string_view text,
                                      const std::string& file) {
  Assets assets(kind);
  TUTTI_RETURN_IF_ERROR(ReadListText(text, file, kAssetsKey, AddTo(assets)));
  return assets;
}

std::filesystem::path AssetsFile(const std::filesystem::path& home, AssetKind kind) {
  return home / absl::StrCat(AssetKindName(kind), "-assets.json");
}

std::filesystem::path AssetFolder(const std::filesystem::path& home, AssetKind kind,
                                  absl::string_view name, absl::string_view version) {
  const std::filesystem::path folder =
      home / "assets" / std::string(AssetKindName(kind)) / std::string(name);
  return version.empty() ? folder : folder / std::string(version);
}

absl::StatusOr<Assets> ReadAssets(const std::filesystem::path& home, AssetKind kind) {
  Assets assets(kind);
  TUTTI_RETURN_IF_ERROR(ReadList(AssetsFile(home, kind), kAssetsKey, AddTo(assets)));
  return assets;
}

absl::Status WriteAssets(const std::filesystem::path& home, const Assets& assets) {
  return WriteList(AssetsFile(home, assets.kind()), kAssetsKey, JsonOf(assets));
}

}  // namespace tutti::spec
