#include "platform/cluster/description.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/waiting.h"
#include "base/status.h"

namespace tutti::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path FileOf(const fs::path& home, const std::string& name) {
  return home / "clusters" / absl::StrCat(name, ".json");
}

json JsonOf(const std::vector<Gpu>& gpus) {
  json array = json::array();
  for (const Gpu& gpu : gpus) array.push_back({{"minor", gpu.minor}, {"model", gpu.model}});
  return array;
}

std::vector<Gpu> GpusOf(const json& array) {
  std::vector<Gpu> gpus;
  for (const json& gpu : array) {
    gpus.push_back({gpu.at("minor").get<int>(), gpu.at("model").get<std::string>()});
  }
  return gpus;
}

json JsonOf(const Autoscale& scale) {
  return {{"nodes", scale.nodes},
          {"min", scale.min},
          {"idle_seconds", scale.idle_seconds},
          {"boot_seconds", scale.boot_seconds},
          {"halt_seconds", scale.halt_seconds},
          {"resume", scale.resume},
          {"suspend", scale.suspend},
          {"sockets", scale.sockets},
          {"cores_per_socket", scale.cores_per_socket},
          {"threads_per_core", scale.threads_per_core},
          {"memory_mib", scale.memory_mib},
          {"gpus", JsonOf(scale.gpus)},
          {"cgroup", scale.cgroup}};
}

Autoscale AutoscaleOf(const json& object) {
  Autoscale scale;
  object.at("nodes").get_to(scale.nodes);
  object.at("min").get_to(scale.min);
  object.at("idle_seconds").get_to(scale.idle_seconds);
  object.at("boot_seconds").get_to(scale.boot_seconds);
  scale.halt_seconds = object.value("halt_seconds", scale.halt_seconds);
  object.at("resume").get_to(scale.resume);
  object.at("suspend").get_to(scale.suspend);
  object.at("sockets").get_to(scale.sockets);
  object.at("cores_per_socket").get_to(scale.cores_per_socket);
  object.at("threads_per_core").get_to(scale.threads_per_core);
  object.at("memory_mib").get_to(scale.memory_mib);
  if (object.contains("gpus")) scale.gpus = GpusOf(object.at("gpus"));
  scale.cgroup = object.value("cgroup", "");
  return scale;
}

json JsonOf(const AccountingDatabase& database) {
  return {{"host", database.host},
          {"port", database.port},
          {"database", database.database},
          {"user", database.user},
          {"password", database.password}};
}

AccountingDatabase DatabaseOf(const json& object) {
  AccountingDatabase database;
  object.at("host").get_to(database.host);
  object.at("port").get_to(database.port);
  object.at("database").get_to(database.database);
  object.at("user").get_to(database.user);
  object.at("password").get_to(database.password);
  return database;
}

json JsonOf(const std::vector<NfsMount>& mounts) {
  json array = json::array();
  for (const NfsMount& mount : mounts) {
    array.push_back({{"server", mount.server},
                     {"port", mount.port},
                     {"export", mount.exported},
                     {"path", mount.path}});
  }
  return array;
}

std::vector<NfsMount> MountsOf(const json& array) {
  std::vector<NfsMount> mounts;
  for (const json& mount : array) {
    mounts.push_back({mount.at("server").get<std::string>(), mount.at("port").get<int>(),
                      mount.at("export").get<std::string>(), mount.at("path").get<std::string>()});
  }
  return mounts;
}

Description DescriptionOf(const std::string& name, const json& object) {
  Description description;
  description.name = name;
  object.at("controller").get_to(description.controller);
  object.at("nodes").get_to(description.nodes);
  object.at("user").get_to(description.user);
  object.at("ssh_config").get_to(description.ssh_config);
  object.at("munge_key").get_to(description.munge_key);
  if (object.contains("accounting")) description.accounting = DatabaseOf(object.at("accounting"));
  if (object.contains("autoscale")) description.autoscale = AutoscaleOf(object.at("autoscale"));
  if (object.contains("mounts")) description.mounts = MountsOf(object.at("mounts"));
  return description;
}

bool IsWord(absl::string_view text, absl::string_view others) {
  return !text.empty() && text.size() <= 200 && text[0] != '-' &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return absl::ascii_isalnum(c) || absl::StrContains(others, c);
         });
}

}  // namespace

std::vector<std::string> Description::Hosts() const {
  std::vector<std::string> hosts = {controller};
  for (const std::string& node : nodes) {
    if (node != controller) hosts.push_back(node);
  }
  return hosts;
}

absl::StatusOr<Description> ReadDescription(const fs::path& home, const std::string& name) {
  TUTTI_RETURN_IF_ERROR(CheckClusterName(name));
  const fs::path file = FileOf(home, name);
  const auto text = base::ReadFile(file, 1 << 20);
  if (absl::IsNotFound(text.status())) {
    return absl::NotFoundError(absl::StrCat(
        "no cluster \"", name, "\" is known here; make it by `tutti cluster create --hosts …`"));
  }
  TUTTI_RETURN_IF_ERROR(text.status());
  try {
    return DescriptionOf(name, json::parse(*text));
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), ": ", error.what()));
  }
}

absl::Status WriteDescription(const fs::path& home, const Description& description) {
  json object = {{"controller", description.controller},
                 {"nodes", description.nodes},
                 {"user", description.user},
                 {"ssh_config", description.ssh_config},
                 {"munge_key", description.munge_key}};
  if (description.accounting) object["accounting"] = JsonOf(*description.accounting);
  if (description.autoscale) object["autoscale"] = JsonOf(*description.autoscale);
  if (!description.mounts.empty()) object["mounts"] = JsonOf(description.mounts);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(home / "clusters"));
  return base::WriteFileAtomic(FileOf(home, description.name), object.dump(1) + "\n", 0600);
}

absl::StatusOr<base::UniqueFd> LockDescription(const fs::path& home, const std::string& name,
                                               const std::atomic<bool>& cancelled) {
  TUTTI_RETURN_IF_ERROR(CheckClusterName(name));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(home / "clusters"));
  return base::LockFile(FileOf(home, name).replace_extension(".lock"), cancelled);
}

absl::Status RemoveDescription(const fs::path& home, const std::string& name) {
  return base::RemoveTree(FileOf(home, name));
}

absl::StatusOr<AccountingDatabase> ReadAccountingDatabase(const std::string& address) {
  const absl::Status wrong = absl::InvalidArgumentError(
      "--accounting-db: write mysql://USER:PASSWORD@HOST[:PORT]/DATABASE, or put that into a file "
      "and write @FILE");
  static constexpr absl::string_view kScheme = "mysql://";
  const size_t at = address.rfind('@');
  if (!absl::StartsWith(address, kScheme) || at == std::string::npos) return wrong;
  const std::string who = address.substr(kScheme.size(), at - kScheme.size());
  const std::string where = address.substr(at + 1);
  const size_t colon = who.find(':'), slash = where.find('/');
  if (colon == std::string::npos || slash == std::string::npos) return wrong;
  AccountingDatabase database;
  database.user = who.substr(0, colon);
  database.password = who.substr(colon + 1);
  database.database = where.substr(slash + 1);
  database.host = where.substr(0, slash);
  if (const size_t port = database.host.find(':'); port != std::string::npos) {
    if (!absl::SimpleAtoi(database.host.substr(port + 1), &database.port)) return wrong;
    database.host.resize(port);
  }
  const bool good = IsWord(database.user, "_-.") && IsWord(database.database, "_-") &&
                    IsWord(database.host, ".-_") && !database.password.empty();
  if (!good) return wrong;
  if (std::any_of(database.password.begin(), database.password.end(),
                  [](unsigned char c) { return c == '"' || c == '#' || absl::ascii_iscntrl(c); })) {
    return absl::InvalidArgumentError(
        "--accounting-db: slurmdbd.conf takes no password with \", # or a control character");
  }
  return database;
}

absl::Status CheckClusterName(const std::string& name) {
  if (IsWord(name, "_-")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is no name for a cluster: letters, digits, - and _"));
}

absl::Status CheckHostName(const std::string& host) {
  if (IsWord(host, ".-_:")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", host, "\" is no host name; --user says who logs in"));
}

}  // namespace tutti::cluster
