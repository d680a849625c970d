#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/client/archive/kept_files.h"
#include "platform/client/commands/commands.h"
#include "platform/client/text/table.h"
#include "platform/container/python/python_check.h"
#include "spec/data/asset.h"
#include "spec/data/data_map.h"
#include "spec/data/home_list.h"
#include "spec/file/asset_file.h"
#include "spec/site/site.h"
#include "spec/site/site_names.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);  // with a Python that is fetched

// The command line takes precedence over the file.
absl::Status TakeNames(const AssetOptions& options, spec::Asset& asset) {
  if (!options.name.empty()) {
    TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("--name", options.name));
    asset.name = options.name;
  }
  if (!options.version.empty()) {
    TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("--version", options.version));
    asset.version = options.version;
  }
  if (!asset.name.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options.file, ": the key \"name\" is missing: write it, or give --name NAME"));
}

// Adds the version, after its files are kept if it is a new one.
absl::StatusOr<spec::Asset> AddVersion(const fs::path& home, const spec::AssetFile& file,
                                       const FilesToKeep& kept, spec::Assets& assets) {
  spec::Asset asset = file.asset;
  if (spec::IsSigned(asset.path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        asset.name, ": its path has a signature, which everyone could read who sees the list of ",
        spec::AssetKindName(assets.kind()), ": make a datastore with the signature as its ",
        "sas_token (tutti datastore create --file FILE) and name that, as ",
        "azureml://datastores/NAME/paths/PATH"));
  }
  if (asset.version.empty()) asset.version = assets.NextVersion(asset.name);
  if (!file.parts.empty()) {
    const fs::path folder = spec::AssetFolder(home, assets.kind(), asset.name, asset.version);
    asset.path = KeptPath(folder, file.parts.front()).string();
    asset.digest = kept.digest;
    bool known = false;
    const bool is_new = !assets.Find({asset.name, asset.version}, &known).ok();
    TUTTI_ASSIGN_OR_RETURN(const spec::Asset added, assets.Add(asset));
    if (is_new) TUTTI_RETURN_IF_ERROR(KeepFiles(kept, folder));
    return added;
  }
  return assets.Add(asset);
}

constexpr char kCreated[] = "created";  // where those come from that a command has made

// With where each comes from.
using Rows = std::vector<spec::SiteName>;

Rows AllRows(const spec::Assets& created, const spec::Site& site) {
  Rows rows;
  for (const auto& [name, versions] : created.assets()) {
    for (const spec::Asset& asset : versions) rows.push_back({asset, kCreated});
  }
  for (spec::SiteName& name : spec::SiteNames(site, created.kind())) {
    rows.push_back(std::move(name));
  }
  return rows;
}

nlohmann::json JsonOf(const spec::SiteName& row) {
  nlohmann::json document = spec::JsonOf(row.asset);
  document["from"] = row.from;
  return document;
}

absl::Status ShowTable(Context& context, const Rows& rows) {
  Table table(
      {{"NAME"}, {"VERSION"}, {"TYPE"}, {"FROM"}, {"DESCRIPTION", Table::Align::kLeft, true}});
  for (const auto& [asset, from] : rows) {
    const std::string version = asset.version.empty() ? "any" : asset.version;
    table.Add({{asset.name}, {version}, {asset.type}, {from}, {asset.description}});
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> AssetCreate(Context& context, const AssetOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site,
                         spec::ReadSite(context.home, spec::AnyContainerLeave()));
  auto file = spec::ReadAssetFile(options.kind, options.file, site);
  TUTTI_RETURN_IF_ERROR(AsInput(file.status()));
  TUTTI_RETURN_IF_ERROR(
      AsInput(container::CheckPython(file->environment, context.home / "environments",
                                     base::Deadline::After(kPatience), file->warnings)));
  for (const std::string& warning : file->warnings) {
    context.err << "warning: " << warning << std::endl;
  }
  TUTTI_RETURN_IF_ERROR(TakeNames(options, file->asset));
  FilesToKeep kept;
  if (!file->parts.empty()) {
    TUTTI_ASSIGN_OR_RETURN(kept, FindFilesToKeep(file->parts, context.home, file->builds));
  }
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::AssetsFile(context.home, options.kind)));
  TUTTI_ASSIGN_OR_RETURN(spec::Assets assets, spec::ReadAssets(context.home, options.kind));
  TUTTI_ASSIGN_OR_RETURN(const spec::Asset added, AddVersion(context.home, *file, kept, assets));
  TUTTI_RETURN_IF_ERROR(spec::WriteAssets(context.home, assets));
  context.out << "azureml:" << added.name << ":" << added.version << " is "
              << (added.digest.empty() ? added.path : options.file) << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> AssetList(Context& context, const AssetOptions& options) {
  if (options.built) return EnvironmentListBuilt(context, options.format);
  TUTTI_ASSIGN_OR_RETURN(const spec::Assets assets, spec::ReadAssets(context.home, options.kind));
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  const Rows rows = AllRows(assets, site);
  if (options.format != Format::kTable) {
    nlohmann::json list = nlohmann::json::array();
    for (const spec::SiteName& row : rows) list.push_back(JsonOf(row));
    const nlohmann::json document = {{"assets", std::move(list)}};
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, document.dump(), options.format));
    return ExitCode::kOk;
  }
  TUTTI_RETURN_IF_ERROR(ShowTable(context, rows));
  if (options.kind == spec::AssetKind::kEnvironment) ShowBuiltEnvironments(context, site);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> AssetShow(Context& context, const AssetOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Assets assets, spec::ReadAssets(context.home, options.kind));
  bool known = false;
  const spec::AssetReference reference{options.name, options.version};
  const auto created = assets.Find(reference, &known);
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  const auto given = spec::FindSiteName(site, options.kind, reference);
  if (!created.ok() && !given) return created.status();
  const spec::SiteName row = created.ok() ? spec::SiteName{*created, kCreated} : *given;
  if (options.format == Format::kTable) {
    TUTTI_RETURN_IF_ERROR(ShowTable(context, {row}));
    if (!row.asset.path.empty()) context.out << row.asset.path << "\n";
  } else {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, JsonOf(row).dump(), options.format));
  }
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> AssetDelete(Context& context, const AssetOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::AssetsFile(context.home, options.kind)));
  TUTTI_ASSIGN_OR_RETURN(spec::Assets assets, spec::ReadAssets(context.home, options.kind));
  TUTTI_RETURN_IF_ERROR(assets.Remove(options.name, options.version));
  TUTTI_RETURN_IF_ERROR(spec::WriteAssets(context.home, assets));
  TUTTI_RETURN_IF_ERROR(base::RemoveTree(
      spec::AssetFolder(context.home, options.kind, options.name, options.version)));
  return ExitCode::kOk;
}

}  // namespace tutti::client
