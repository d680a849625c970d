#include "spec/site/data_finder.h"

#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/data/data_address.h"
#include "spec/data/data_map.h"
#include "spec/data/local_path.h"

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

absl::StatusOr<DataHere> FindHere(const std::string& address, absl::string_view type,
                                  const std::filesystem::path& base, const Site& site) {
  const bool is_path = !IsAddress(address);
  auto local = is_path ? LocalPath(address, base) : site.data.Find(address);
  if (is_path || !absl::IsNotFound(local.status())) {
    TUTTI_RETURN_IF_ERROR(local.status());
    return DataHere{*std::move(local), ""};
  }
  local = PathOfJobOutput(address, site.jobs);
  if (local.ok()) {
    const std::string job = local->substr(0, local->find('/', site.jobs.size() + 1));
    return DataHere{type == "uri_file" ? FileOfOutput(*local) : *local, job};
  }
  if (!absl::IsNotFound(local.status())) return local.status();
  const auto place = PlaceOf(address, site.datastores);
  const bool is_folder = place.ok() && *place && (*place)->kind == StoreKind::kLocal;
  return is_folder ? absl::StatusOr<DataHere>(DataHere{(*place)->path, ""}) : local.status();
}

std::string AdviceToMap(absl::string_view address) {
  return absl::StrCat("copy it here and say where: tutti data map ", PrefixToMap(address),
                      " FOLDER", ByItsFile(address));
}

}  // namespace tutti::spec
