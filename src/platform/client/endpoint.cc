#include "platform/client/endpoint.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/file.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string TextOf(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

fs::path HomeFolder(const std::string& flag) {
  if (!flag.empty()) return fs::absolute(flag).lexically_normal();
  if (const std::string set = Variable("TUTTI_HOME"); !set.empty()) return fs::absolute(set);
  if (const std::string data = Variable("XDG_DATA_HOME"); !data.empty()) {
    return fs::path(data) / "tutti";
  }
  const std::string user = Variable("HOME");
  return fs::path(user.empty() ? "/root" : user) / ".local/share/tutti";
}

absl::StatusOr<Endpoint> FindService(const fs::path& home) {
  Endpoint endpoint{Variable("TUTTI_ADDRESS"), Variable("TUTTI_TOKEN")};
  if (!endpoint.address.empty() && !endpoint.token.empty()) return endpoint;

  const fs::path file = home / "service.json";
  const auto text = base::ReadFile(file, 1 << 20);
  if (!text.ok() && absl::IsNotFound(text.status())) {
    // An address without a token may be meant: the service says what it wants.
    if (!endpoint.address.empty()) return endpoint;
    return absl::UnavailableError(
        absl::StrCat("no service runs with ", home.string(),
                     " as its home: start one with `tutti serve`, or say where one is with "
                     "--home or TUTTI_ADDRESS"));
  }
  if (!text.ok()) return text.status();
  const auto json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || TextOf(json, "address").empty()) {
    return absl::UnavailableError(
        absl::StrCat(file.string(), " is not readable: restart the service"));
  }
  if (endpoint.address.empty()) endpoint.address = TextOf(json, "address");
  if (endpoint.token.empty()) endpoint.token = TextOf(json, "token");
  return endpoint;
}

}  // namespace tutti::client
