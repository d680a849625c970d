// Keeps file servers: `tutti file-server create --file file-server.yml` has the service of this
// machine serve a folder by NFS, which nodes mount or read as a datastore of the server's name. The
// list lies in HOME/file-servers.json; the service runs what it says (platform/file_server/).
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "spec/data/nfs_endpoint.h"
#include "spec/types/data_place.h"

namespace tutti::spec {

inline constexpr char kAnyAddress[] = "0.0.0.0";  // of a machine; none that leads to it

struct FileServer {
  std::string name;  // letters, digits, "-" and "_"; clients mount "/NAME"
  std::string description;
  std::map<std::string, std::string> tags;
  std::filesystem::path folder;       // what it serves; absolute
  std::string address = "127.0.0.1";  // of this machine, at which it listens; numeric, IPv4
  int port = kNfsPort;
  bool is_writable = false;
  // Who may mount: numeric IPv4 addresses and networks, as "10.0.0.0/24"; never empty.
  std::vector<std::string> clients;
  std::string fill;  // the address of what the folder is filled with; empty: nothing
};

using FileServers = std::map<std::string, FileServer>;  // by name

// Returns "nfs://ADDRESS:PORT", without the port if that is NFS's own.
std::string EndpointOf(const FileServer& server);
// Returns all that it serves, as the datastore of its name has it.
DataPlace PlaceOf(const FileServer& server);

// Whether its endpoint leads each node to the node itself: one of loopback, or 0.0.0.0, as older
// lists may have.
bool NamesEachNode(const FileServer& server);

// Whether it is "10.0.0.7", or with `network` also "10.0.0.0/24".
bool IsIpv4(absl::string_view text, bool network);

// Whether a path can stand in quotes in the server's configuration, where nothing escapes: it has
// no quotation mark, backslash or control character.
bool IsPlainPath(absl::string_view path);

// Returns the JSON of one, and of all: an array, as HOME/file-servers.json has it.
nlohmann::json JsonOf(const FileServer& server);
nlohmann::json JsonOf(const FileServers& servers);

absl::StatusOr<FileServers> FileServersFromJson(absl::string_view text, const std::string& file);
std::filesystem::path FileServersFile(const std::filesystem::path& home);
absl::StatusOr<FileServers> ReadFileServers(const std::filesystem::path& home);
absl::Status WriteFileServers(const std::filesystem::path& home, const FileServers& servers);

}  // namespace tutti::spec
