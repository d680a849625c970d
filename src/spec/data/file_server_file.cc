#include "spec/data/file_server_file.h"

#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/data/asset_head.h"
#include "spec/data/data_map.h"
#include "spec/data/local_path.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

constexpr int kLastServerPort = 65535;
constexpr std::array<absl::string_view, 2> kAccess = {"read_only", "read_write"};

class ServerFileReader {
 public:
  ServerFileReader(const YamlNode& root, const std::filesystem::path& folder, FileServer& server,
                   Diagnostics& diagnostics)
      : root_(root),
        folder_(folder),
        server_(server),
        diagnostics_(diagnostics),
        reader_(root, "a file server's file", diagnostics) {}

  void Read() {
    ReadName();
    ReadFolder();
    ReadAddress();
    reader_.Count("port", kLastServerPort, server_.port);
    std::string access;
    reader_.Choice("access", kAccess, access);
    server_.is_writable = access == "read_write";
    ReadClients();
    ReadFill();
    reader_.Finish();
  }

 private:
  void ReadAddress() {
    const YamlNode::Entry* const entry = reader_.Text("address", server_.address);
    if (entry == nullptr) return;
    if (!IsIpv4(server_.address, false)) {
      diagnostics_.Error(entry->line,
                         "address must be a numeric IPv4 address of this machine, as 10.0.0.5");
    } else if (server_.address == kAnyAddress) {
      diagnostics_.Error(entry->line,
                         "address 0.0.0.0 leads each node to itself: name the address by which "
                         "nodes reach this machine, as 10.0.0.5");
    }
  }

  // The list of servers is no place for a secret: it is shown, and a part of each backup.
  void ReadFill() {
    const YamlNode::Entry* const entry = reader_.Text("fill", server_.fill);
    if (entry == nullptr) return;
    if (!absl::StrContains(server_.fill, "://")) {
      return diagnostics_.Error(entry->line,
                                "fill must be the address of a folder in a store, as "
                                "azureml://datastores/NAME/paths/PATH");
    }
    if (!IsSigned(server_.fill)) return;
    diagnostics_.Error(
        entry->line,
        "fill has a signature (sig=), which everyone could read who sees the list of "
        "file servers: make a datastore with sas_token (tutti datastore create) and "
        "name it, as azureml://datastores/NAME/paths/PATH");
  }

  void ReadName() {
    const YamlNode::Entry* const entry = ReadHead(reader_, server_, diagnostics_);
    if (entry == nullptr) return diagnostics_.Error(root_.line, "the key \"name\" is missing");
    if (IsJobName(server_.name)) return;
    diagnostics_.Error(entry->line,
                       "a file server's name is of letters, digits, \"-\" and \"_\", 128 at most");
  }

  void ReadFolder() {
    std::string path;
    const YamlNode::Entry* const entry = reader_.Text("folder", path);
    if (entry == nullptr || path.empty()) {
      return diagnostics_.Error(root_.line,
                                "the key \"folder\" is missing: the folder of this machine that is "
                                "served, such as where its disk is mounted");
    }
    auto local = LocalPath(path, folder_);
    if (!local.ok()) return diagnostics_.Error(entry->line, local.status().message());
    if (!IsPlainPath(*local)) {
      return diagnostics_.Error(
          entry->line,
          "folder has a quotation mark, a backslash or a control character, which the "
          "server's configuration cannot have: rename it");
    }
    server_.folder = *std::move(local);
    if (server_.folder == server_.folder.root_path()) {
      diagnostics_.Error(entry->line, "folder is the whole machine: name one that has data alone");
    }
  }

  void ReadClients() {
    const YamlNode::Entry* const entry = reader_.Texts("clients", server_.clients);
    for (const std::string& client : server_.clients) {
      if (IsIpv4(client, true)) continue;
      diagnostics_.Error(entry->line, absl::StrCat("clients: \"", client.substr(0, 80),
                                                   "\" is no IPv4 address or network, as 10.0.0.7 "
                                                   "or 10.0.0.0/24"));
    }
    if (!server_.clients.empty()) return;
    if (!absl::StartsWith(server_.address, "127.")) {
      return diagnostics_.Error(root_.line,
                                "the key \"clients\" is missing: at an address of the network it "
                                "must say who may mount, as clients: [10.0.0.0/24]");
    }
    server_.clients = {"127.0.0.0/8"};
  }

  const YamlNode& root_;
  const std::filesystem::path& folder_;
  FileServer& server_;
  Diagnostics& diagnostics_;
  MappingReader reader_;
};

}  // namespace

absl::StatusOr<FileServer> ReadFileServerFile(absl::string_view text, absl::string_view file_name,
                                              const std::filesystem::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  Diagnostics diagnostics(file_name);
  FileServer server;
  ServerFileReader(*root, folder, server, diagnostics).Read();
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  return server;
}

}  // namespace tutti::spec
