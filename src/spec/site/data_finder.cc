#include "spec/site/data_finder.h"

#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/text/path_pattern.h"
#include "spec/data/data_address.h"
#include "spec/data/data_map.h"
#include "spec/data/local_path.h"
#include "spec/data/percent.h"

namespace tutti::spec {
namespace {

// An output that is a file lies in a folder of its own.
std::string FileOfOutput(const std::string& path) {
  std::error_code error;
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator at(path, error), end; at != end; at.increment(error)) {
    files.push_back(at->path().native());
  }
  return files.size() == 1 ? files[0] : path;
}

// Returns the advice to make known what `written` names by its file: a datastore, or a data
// asset. "" for all else.
std::string ByItsFile(absl::string_view written) {
  if (absl::StartsWith(CanonicalAddress(written), "azureml://datastores/")) {
    return ", or make the datastore known by its file: tutti datastore create --file FILE";
  }
  if (absl::StrContains(written, "?") && absl::StrContains(written, "sig=")) {
    return ", or make a datastore with the signature as its sas_token, which no job then shows: "
           "tutti datastore create --file FILE";
  }
  if (!absl::StartsWith(written, "azureml:") || absl::StrContains(written, "://")) return "";
  return ", or make the name known by its file: tutti data create --file FILE";
}

// An address by the folder that all its matches lie in, and the pattern below that; without a
// wildcard the whole address and "".
std::pair<std::string, std::string> SplitPattern(const std::string& address) {
  const bool is_url = IsUrl(address);
  const std::string whole = is_url ? WithoutQuery(address) : address;
  if (!base::HasWildcard(whole)) return {address, ""};
  const std::string folder = base::FolderOfPattern(whole);
  absl::string_view pattern = absl::string_view(whole).substr(folder.size());
  while (absl::ConsumePrefix(&pattern, "/")) {
  }
  while (absl::ConsumeSuffix(&pattern, "/")) {
  }
  return {folder, is_url ? PercentDecoded(pattern) : std::string(pattern)};
}

}  // namespace

absl::StatusOr<NamedData> ResolveAsset(const std::string& written, const Site& site) {
  if (!absl::StartsWith(written, "azureml:")) return NamedData{written, ""};
  bool known = false;
  auto asset = site.data_assets.Find(ReferenceOf(AssetKind::kData, written), &known);
  const bool mapped = !absl::IsNotFound(site.data.Find(written).status());
  if (!known || mapped) return NamedData{written, ""};
  TUTTI_RETURN_IF_ERROR(asset.status());
  return NamedData{asset->path, asset->type,
                   absl::StrCat("azureml:", asset->name, ":", asset->version)};
}

bool IsModelType(absl::string_view type) {
  return type == "custom_model" || type == "mlflow_model" || type == "triton_model";
}

absl::StatusOr<std::optional<NamedModel>> ResolveModel(const std::string& written,
                                                       absl::string_view type, const Site& site) {
  const AssetReference reference = ReferenceOf(AssetKind::kModel, written);
  const bool is_name =
      absl::StartsWith(written, "azureml:") && CheckAssetName("name", reference.name).ok();
  if (!is_name || !site.find_model) return std::nullopt;
  bool is_data = false;
  site.data_assets.Find(ReferenceOf(AssetKind::kData, written), &is_data).IgnoreError();
  const bool mapped = !absl::IsNotFound(site.data.Find(written).status());
  if ((is_data || mapped) && !IsModelType(type)) return std::nullopt;
  const auto model = site.find_model(reference);
  if (absl::IsNotFound(model.status())) {
    if (is_data || mapped || !IsModelType(type)) return std::nullopt;
    return absl::NotFoundError(absl::StrCat(model.status().message(),
                                            "; register it (tutti model register), or ",
                                            AdviceToMap(written)));
  }
  TUTTI_RETURN_IF_ERROR(model.status());
  return NamedModel{*model, absl::StrCat("azureml:", reference.name, ":", model->version)};
}

absl::StatusOr<DataHere> FindHere(const std::string& written, absl::string_view type,
                                  const std::filesystem::path& base, const Site& site) {
  if (!IsAddress(written)) {
    TUTTI_ASSIGN_OR_RETURN(std::string path, LocalPath(written, base));
    return DataHere{.path = std::move(path)};
  }
  const auto [address, pattern] = SplitPattern(written);
  auto local = site.data.Find(address);
  if (!absl::IsNotFound(local.status())) {
    TUTTI_RETURN_IF_ERROR(local.status());
    return DataHere{*std::move(local), pattern, ""};
  }
  local = PathOfJobOutput(address, site.jobs);
  if (local.ok()) {
    const std::string job = local->substr(0, local->find('/', site.jobs.size() + 1));
    const bool is_file = type == "uri_file" && pattern.empty();
    return DataHere{is_file ? FileOfOutput(*local) : *local, pattern, job};
  }
  if (!absl::IsNotFound(local.status())) return local.status();
  const auto place = PlaceOf(address, site.datastores);
  const bool is_folder = place.ok() && *place && (*place)->kind == StoreKind::kLocal;
  return is_folder ? absl::StatusOr<DataHere>(DataHere{(*place)->path, pattern, ""})
                   : local.status();
}

std::string AdviceToMap(absl::string_view address) {
  return absl::StrCat("copy it here and say where: tutti data map ", PrefixToMap(address),
                      " FOLDER", ByItsFile(address));
}

}  // namespace tutti::spec
