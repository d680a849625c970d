#include "platform/container/registry_logins.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/container/base_images.h"
#include "platform/container/make_image.h"
#include "spec/types/registry_secret.h"

namespace tutti::container {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Variables = std::map<std::string, std::string>;

constexpr char kKind[] = "login";
constexpr char kFileName[] = "config.json";  // as DOCKER_CONFIG expects it
constexpr uint64_t kLargestAuthFile = 1 << 20;
constexpr uint64_t kLargestBuildFile = 1 << 20;

std::string HostOf(const std::string& reference) {
  const std::string full = FullReference(reference);
  return full.substr(0, full.find('/'));
}

// A key of such a file may name a part of a registry, or be an address as Docker wrote it.
bool IsOfHost(absl::string_view key, absl::string_view host) {
  if (!absl::ConsumePrefix(&key, "https://")) absl::ConsumePrefix(&key, "http://");
  if (host == "docker.io") absl::ConsumePrefix(&key, "index.");
  return key == host || absl::StartsWith(key, absl::StrCat(host, "/"));
}

// Returns the files that podman reads, of which the first takes precedence
// (containers-auth.json(5)).
std::vector<fs::path> OwnFiles(const Variables& variables) {
  const auto value = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  if (const std::string file = value("REGISTRY_AUTH_FILE"); !file.empty()) return {file};
  const std::string runtime = value("XDG_RUNTIME_DIR"), config = value("XDG_CONFIG_HOME");
  const std::string home = value("HOME"), docker = value("DOCKER_CONFIG");
  std::vector<fs::path> files = {
      fs::path(runtime.empty() ? absl::StrCat("/run/containers/", ::geteuid()) : runtime) /
      (runtime.empty() ? "auth.json" : "containers/auth.json")};
  if (!config.empty() || !home.empty()) {
    files.push_back((config.empty() ? fs::path(home) / ".config" : fs::path(config)) /
                    "containers/auth.json");
  }
  if (!docker.empty()) {
    files.push_back(fs::path(docker) / kFileName);
  } else if (!home.empty()) {
    files.push_back(fs::path(home) / ".docker" / kFileName);
  }
  return files;
}

// Returns all that these files say, as one.
std::string OwnText(const Variables& variables) {
  json all = json::object();
  const std::vector<fs::path> files = OwnFiles(variables);
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    const auto text = base::ReadFile(*file, kLargestAuthFile);
    if (!text.ok()) continue;  // none, or of another user: podman could not read it either
    const json one = json::parse(*text, nullptr, /*allow_exceptions=*/false);
    if (one.is_object()) all.merge_patch(one);
  }
  return all.dump();
}

}  // namespace

absl::StatusOr<Login> LoginFrom(absl::string_view secret_value) {
  Login login;
  const json value = json::parse(secret_value.begin(), secret_value.end(), nullptr, false);
  if (value.is_object()) {
    const auto text_of = [&](const char* name) {
      const auto found = value.find(name);
      return found != value.end() && found->is_string() ? found->get<std::string>() : "";
    };
    login = {text_of("username"), text_of("password")};
  } else {
    absl::ConsumeSuffix(&secret_value, "\n");
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(secret_value, absl::MaxSplits(':', 1));
    login = {std::string(parts.first), std::string(parts.second)};
  }
  if (!login.username.empty() && !login.password.empty() &&
      !absl::StrContains(login.username, ':')) {
    return login;
  }
  return absl::InvalidArgumentError(
      "a registry's login is USER:PASSWORD, or {\"username\": \"…\", \"password\": \"…\"}");
}

absl::StatusOr<Logins> LoginsFrom(const std::map<std::string, std::string>& secrets,
                                  const std::set<std::string>& registries) {
  Logins logins;
  for (const std::string& host : registries) {
    const std::string name = spec::SecretOfRegistry(host);
    const auto value = secrets.find(name);
    if (value == secrets.end()) continue;
    auto login = LoginFrom(value->second);
    TUTTI_RETURN_IF_ERROR(base::Annotate(login.status(), absl::StrCat("secret \"", name, "\"")));
    logins[host] = *std::move(login);
  }
  return logins;
}

std::set<std::string> RegistriesOf(const spec::Image& image) {
  std::set<std::string> hosts;
  if (image.empty()) return hosts;
  if (image.context.empty()) {
    hosts.insert(HostOf(image.reference));
  } else {
    const auto text = base::ReadFile(fs::path(image.context) / image.dockerfile, kLargestBuildFile);
    for (const BaseImage& base : BaseImagesOf(text.value_or(""))) {
      hosts.insert(HostOf(base.reference));
    }
  }
  hosts.erase("localhost");
  return hosts;
}

std::string AuthText(const Logins& logins, absl::string_view own) {
  json text = json::parse(own.begin(), own.end(), nullptr, /*allow_exceptions=*/false);
  if (!text.is_object()) text = json::object();
  for (const char* part : {"auths", "credHelpers"}) {
    if (!text.contains(part) || !text[part].is_object()) text[part] = json::object();
    for (const auto& [host, login] : logins) {
      for (auto entry = text[part].begin(); entry != text[part].end();) {
        entry = IsOfHost(entry.key(), host) ? text[part].erase(entry) : std::next(entry);
      }
    }
  }
  for (const auto& [host, login] : logins) {
    text["auths"][host] = {
        {"auth", absl::Base64Escape(absl::StrCat(login.username, ":", login.password))}};
  }
  return text.dump();
}

absl::StatusOr<LoginFile> LoginFile::Make(const Logins& logins, const Variables& variables) {
  LoginFile made;
  if (logins.empty()) return made;
  TUTTI_ASSIGN_OR_RETURN(
      made.folder_, base::MemoryFolder::Make(kKind, base::RandomHex(8), "logins of registries"));
  const fs::path file = made.folder_->path() / kFileName;
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd,
                         base::Open(file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  TUTTI_RETURN_IF_ERROR(
      base::WriteAll(fd.get(), AuthText(logins, OwnText(variables)), file.native()));
  return made;
}

LoginFile::LoginFile(LoginFile&& other) noexcept
    : folder_(std::exchange(other.folder_, std::nullopt)) {}

LoginFile::~LoginFile() {
  if (folder_) base::RemoveTree(folder_->path()).IgnoreError();
}

// `podman manifest inspect` before version 4.4 knows the second alone, which is behind the user's
// own logins there.
Variables LoginFile::variables() const {
  if (!folder_) return {};
  return {{"REGISTRY_AUTH_FILE", (folder_->path() / kFileName).native()},
          {"DOCKER_CONFIG", folder_->path().native()}};
}

void LoginFile::RemoveLeftovers() { base::MemoryFolder::RemoveUnheld(kKind); }

}  // namespace tutti::container
