#include "spec/types/service_endpoint.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"

namespace tutti::spec {
namespace {

std::string TextOf(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || TextOf(json, "address").empty()) {
    return absl::DataLossError("no service address in it");
  }
  return Endpoint{TextOf(json, "address"), TextOf(json, "token"), TextOf(json, "certificate")};
}

absl::StatusOr<Endpoint> ReadEndpoint(const std::filesystem::path& file) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, base::ReadFile(file, 1 << 20));
  absl::StatusOr<Endpoint> endpoint = ParseEndpoint(text);
  TUTTI_RETURN_IF_ERROR(base::Annotate(endpoint.status(), file.native()));
  return endpoint;
}

std::string ToJson(const Endpoint& endpoint) {
  nlohmann::json json{{"address", endpoint.address}};
  if (!endpoint.token.empty()) json["token"] = endpoint.token;
  if (!endpoint.certificate.empty()) json["certificate"] = endpoint.certificate;
  return json.dump();
}

bool IsOfThisMachineOnly(absl::string_view address) {
  return absl::StrContains(address, "//127.") || absl::StrContains(address, "//localhost") ||
         absl::StrContains(address, "//0.0.0.0");
}

}  // namespace tutti::spec
