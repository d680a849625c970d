// The files of a site: site.yml, data and compute files, and what the commands keep of them. What a
// reader takes it takes again once it was written.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "spec/compute_file.h"
#include "spec/data_asset.h"
#include "spec/json_fields.h"
#include "spec/site.h"

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

void ReadAll(absl::string_view text) {
  Site site = BuiltInSite();
  Taken(ReadSiteText(text, "site.yml", "/home", site));
  if (const auto data = ReadDataFile(text, "data.yml", "/base"); Taken(data)) {
    DataAssets assets;
    if (!assets.Add(data->asset).ok()) std::abort();
    const nlohmann::json document = {{"assets", JsonOf(assets)}};
    const std::string written = Dump(document);
    const auto back = DataAssetsFromJson(written, "assets");
    if (!back.ok() || back->assets().size() != 1) std::abort();
  }
  if (const auto compute = ReadComputeFile(text, "compute.yml"); Taken(compute)) {
    const nlohmann::json document = {{"computes", JsonOf({{"x", compute->compute}})}};
    const std::string written = Dump(document);
    if (!ComputesFromJson(written, "computes").ok()) std::abort();
  }
  Taken(DataAssetsFromJson(text, "assets"));
  Taken(ComputesFromJson(text, "computes"));
}

}  // namespace
}  // namespace tutti::spec

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tutti::spec::ReadAll({reinterpret_cast<const char*>(data), size});
  return 0;
}
