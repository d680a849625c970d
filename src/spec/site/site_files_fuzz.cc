// The files of a site: site.yml, data and compute files, and what the commands keep of them. What a
// reader takes it takes again once it was written.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "spec/data/datastore_file.h"
#include "spec/data/file_server_file.h"
#include "spec/file/asset_file.h"
#include "spec/file/model_file.h"
#include "spec/json/json_fields.h"
#include "spec/site/compute_file.h"
#include "spec/site/site.h"

namespace tutti::spec {
namespace {

// A text that is refused says why.
template <typename Result>
bool Taken(const Result& result) {
  const absl::Status status = [&] {
    if constexpr (std::is_same_v<Result, absl::Status>) {
      return result;
    } else {
      return result.status();
    }
  }();
  if (!status.ok() && status.message().empty()) std::abort();
  return status.ok();
}

void ReadAsset(AssetKind kind, absl::string_view text, const Site& site) {
  const ReadFileFunction read_file = [&](const std::filesystem::path&) {
    return std::string(text);
  };
  const auto file = ReadAssetFile(kind, "file.yml", "/base", site, read_file);
  if (!Taken(file)) return;
  Assets assets(kind);
  if (!assets.Add(file->asset).ok()) std::abort();
  const nlohmann::json document = {{"assets", JsonOf(assets)}};
  const auto back = AssetsFromJson(kind, Dump(document), "assets");
  if (!back.ok() || back->assets().size() != 1) std::abort();
}

void ReadAll(absl::string_view text) {
  Site site = BuiltInSite();
  Taken(ReadSiteText(text, "site.yml", "/home", site));
  for (const AssetKind kind : {AssetKind::kData, AssetKind::kEnvironment, AssetKind::kComponent}) {
    ReadAsset(kind, text, site);
  }
  Taken(ReadModelText(text, "model.yml", "/base"));
  if (const auto compute = ReadComputeFile(text, "compute.yml"); Taken(compute)) {
    const nlohmann::json document = {{"computes", JsonOf({{"x", compute->compute}})}};
    const std::string written = Dump(document);
    if (!ComputesFromJson(written, "computes").ok()) std::abort();
  }
  if (const auto store = ReadDatastoreFile(text, "store.yml", "/base"); Taken(store)) {
    const nlohmann::json document = {{"datastores", JsonOf({{"x", store->datastore}})}};
    if (!DatastoresFromJson(Dump(document), "datastores").ok()) std::abort();
  }
  if (const auto server = ReadFileServerFile(text, "server.yml", "/base"); Taken(server)) {
    const nlohmann::json document = {{"file_servers", JsonOf(FileServers{{"x", *server}})}};
    if (!FileServersFromJson(Dump(document), "servers").ok()) std::abort();
  }
  Taken(DatastoresFromJson(text, "datastores"));
  Taken(FileServersFromJson(text, "servers"));
  Taken(AssetsFromJson(AssetKind::kData, text, "assets"));
  Taken(ComputesFromJson(text, "computes"));
}

}  // namespace
}  // namespace tutti::spec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::spec::ReadAll({reinterpret_cast<const char*>(data), size});
  return 0;
}
