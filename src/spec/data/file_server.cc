#include "spec/data/file_server.h"

#include <arpa/inet.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/data/home_list.h"
#include "spec/json/json_fields.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

using nlohmann::json;

constexpr char kFileServersKey[] = "file_servers";
constexpr int kLastPort = 65535, kLongestPrefix = 32;

// Checks a server of a list as one of a file, since the list may have been edited and goes into
// another program's configuration.
absl::Status CheckServer(const FileServer& server, const std::string& location) {
  const auto wrong = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(location, ".", what));
  };
  if (!IsJobName(server.name)) return wrong("name is of letters, digits, \"-\" and \"_\"");
  if (!server.folder.is_absolute()) return wrong("folder must be an absolute path");
  if (!IsPlainPath(server.folder.native())) {
    return wrong("folder has a quotation mark, a backslash or a control character");
  }
  if (server.folder == server.folder.root_path()) return wrong("folder is the whole machine");
  if (!IsIpv4(server.address, false)) return wrong("address must be a numeric IPv4 address");
  if (server.clients.empty()) return wrong("clients must name who may mount");
  for (const std::string& client : server.clients) {
    if (!IsIpv4(client, true)) return wrong("clients must be numeric IPv4 addresses or networks");
  }
  return absl::OkStatus();
}

absl::StatusOr<FileServer> FileServerOf(const json& document, const std::string& path) {
  FileServer server;
  std::string folder;
  JsonFields fields(document, path, Missing::kKeepsDefault);
  fields.Read("name", server.name);
  fields.Read("description", server.description);
  fields.Read("tags", server.tags);
  fields.Read("folder", folder);
  fields.Read("address", server.address);
  fields.Read("port", server.port, 1, kLastPort);
  fields.Read("writable", server.is_writable);
  fields.Read("clients", server.clients);
  fields.Read("fill", server.fill);
  TUTTI_RETURN_IF_ERROR(fields.Finish());
  server.folder = folder;
  TUTTI_RETURN_IF_ERROR(CheckServer(server, path));
  return server;
}

EachEntry AddTo(FileServers& servers) {
  return [&servers](const json& entry, const std::string& location) -> absl::Status {
    TUTTI_ASSIGN_OR_RETURN(FileServer server, FileServerOf(entry, location));
    const std::string name = server.name;
    servers[name] = std::move(server);
    return absl::OkStatus();
  };
}

}  // namespace

std::string EndpointOf(const FileServer& server) {
  return absl::StrCat("nfs://", server.address,
                      server.port == kNfsPort ? "" : absl::StrCat(":", server.port));
}

DataPlace PlaceOf(const FileServer& server) {
  DataPlace place;
  place.kind = StoreKind::kNfs;
  place.container = server.name;
  place.endpoint = EndpointOf(server);
  place.datastore = server.name;
  return place;
}

bool NamesEachNode(const FileServer& server) {
  return absl::StartsWith(server.address, "127.") || server.address == kAnyAddress;
}

bool IsIpv4(absl::string_view text, bool network) {
  if (text.find_first_not_of("0123456789./") != absl::string_view::npos) return false;
  const size_t slash = text.find('/');
  if (slash != absl::string_view::npos) {
    int prefix = -1;
    const absl::string_view digits = text.substr(slash + 1);
    if (!network || digits.empty() || digits.size() > 2 || !absl::SimpleAtoi(digits, &prefix) ||
        prefix < 0 || prefix > kLongestPrefix) {
      return false;
    }
  }
  in_addr parsed = {};
  return ::inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &parsed) == 1;
}

bool IsPlainPath(absl::string_view path) {
  return std::none_of(path.begin(), path.end(), [](unsigned char c) {
    return absl::ascii_iscntrl(c) || c == '"' || c == '\\';
  });
}

json JsonOf(const FileServer& server) {
  return {{"name", server.name},
          {"description", server.description},
          {"tags", server.tags},
          {"folder", server.folder.native()},
          {"address", server.address},
          {"port", server.port},
          {"writable", server.is_writable},
          {"clients", server.clients},
          {"fill", server.fill}};
}

json JsonOf(const FileServers& servers) {
  json list = json::array();
  for (const auto& [name, server] : servers) list.push_back(JsonOf(server));
  return list;
}

absl::StatusOr<FileServers> FileServersFromJson(absl::string_view text, const std::string& file) {
  FileServers servers;
  TUTTI_RETURN_IF_ERROR(ReadListText(text, file, kFileServersKey, AddTo(servers)));
  return servers;
}

std::filesystem::path FileServersFile(const std::filesystem::path& home) {
  return home / "file-servers.json";
}

absl::StatusOr<FileServers> ReadFileServers(const std::filesystem::path& home) {
  FileServers servers;
  TUTTI_RETURN_IF_ERROR(ReadList(FileServersFile(home), kFileServersKey, AddTo(servers)));
  return servers;
}

absl::Status WriteFileServers(const std::filesystem::path& home, const FileServers& servers) {
  return WriteList(FileServersFile(home), kFileServersKey, JsonOf(servers));
}

}  // namespace tutti::spec
