#include "platform/engine/slurm/service_file.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::engine {

absl::StatusOr<ServiceFile> ReadServiceFile(const std::filesystem::path& file) {
  ServiceFile service;
  TUTTI_ASSIGN_OR_RETURN(service.text, base::ReadFile(file, 1 << 20));
  const auto json = nlohmann::json::parse(service.text, nullptr, false);
  if (!json.is_object() || !json.contains("address") || !json["address"].is_string()) {
    return absl::DataLossError(absl::StrCat(file.native(), " names no address"));
  }
  service.address = json["address"].get<std::string>();
  return service;
}

bool IsOfThisMachineOnly(absl::string_view address) {
  return absl::StrContains(address, "//127.") || absl::StrContains(address, "//localhost") ||
         absl::StrContains(address, "//0.0.0.0");
}

}  // namespace tutti::engine
