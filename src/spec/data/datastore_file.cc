#include "spec/data/datastore_file.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "spec/data/asset_head.h"
#include "spec/data/datastore_credentials.h"
#include "spec/data/local_path.h"
#include "spec/data/nfs_endpoint.h"
#include "spec/text/diagnostics.h"
#include "spec/text/mapping_reader.h"
#include "spec/text/other_kinds.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

constexpr std::array<absl::string_view, 9> kTypesOfStores = {
    "azure_blob", "azure_data_lake_gen2", "azure_file", "s3", "gcs", "local", "nfs",
    "one_lake",   "azure_data_lake_gen1"};
constexpr absl::string_view kNfsType = "nfs";
constexpr absl::string_view kAzuresCloud = "core.windows.net";

// Says what a type is, and which key names its container.
struct StoreType {
  absl::string_view type;
  StoreKind kind;
  const char* container_key;
  absl::string_view host;  // of Azure: between account and cloud
};
constexpr StoreType kStoreTypes[] = {
    {"azure_blob", StoreKind::kAzureBlob, "container_name", "blob"},
    {"azure_data_lake_gen2", StoreKind::kAzureDataLake, "filesystem", "dfs"},
    {"azure_file", StoreKind::kAzureFile, "file_share_name", "file"},
    {"s3", StoreKind::kS3, "bucket_name", ""},
    {"gcs", StoreKind::kGcs, "bucket_name", ""},
    {"local", StoreKind::kLocal, "", ""},
    {"nfs", StoreKind::kLocal, "", ""},
};

const StoreType* FindType(absl::string_view type) {
  const auto* const found =
      std::find_if(std::begin(kStoreTypes), std::end(kStoreTypes),
                   [&](const StoreType& known) { return known.type == type; });
  return found == std::end(kStoreTypes) ? nullptr : found;
}

// Whether it can stand in the address of a store, where another character would lead elsewhere.
bool IsLabel(absl::string_view text, absl::string_view others) {
  return !text.empty() && text.size() <= 255 &&
         std::all_of(text.begin(), text.end(), [&](unsigned char c) {
           return absl::ascii_isalnum(c) || absl::StrContains(others, static_cast<char>(c));
         });
}

// Folders below each other, "a/b", of names that an address can have.
bool IsExport(absl::string_view path) {
  const std::vector<absl::string_view> names = absl::StrSplit(path, '/');
  return std::all_of(names.begin(), names.end(), [](absl::string_view name) {
    return IsLabel(name, "-_.$") && name != "." && name != "..";
  });
}

// "http://HOST:PORT/PATH", without a user, a query or a fragment.
bool IsServerUrl(absl::string_view url) {
  if (!absl::ConsumePrefix(&url, "https://") && !absl::ConsumePrefix(&url, "http://")) return false;
  return url.size() <= 1024 && IsLabel(url.substr(0, url.find('/')), "-.:[]") &&
         std::all_of(url.begin(), url.end(), [](unsigned char c) {
           return absl::ascii_isgraph(c) && c != '?' && c != '#' && c != '@' && c != '\\';
         });
}

// "minio.example.org" of "http://minio.example.org:9000/x", "[::1]" of "http://[::1]:9000".
absl::string_view HostOf(absl::string_view url) {
  url = url.substr(url.find("://") + 3);
  url = url.substr(0, url.find('/'));
  return absl::StartsWith(url, "[") ? url.substr(0, url.find(']') + 1)
                                    : url.substr(0, url.find(':'));
}

bool IsThisMachine(absl::string_view host) {
  if (host == "localhost" || absl::EndsWith(host, ".localhost") || host == "[::1]") return true;
  return absl::StartsWith(host, "127.") &&
         host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

class FileReader {
 public:
  FileReader(const YamlNode& root, const std::filesystem::path& folder, DatastoreFile& file,
             Diagnostics& diagnostics)
      : root_(root),
        folder_(folder),
        file_(file),
        store_(file.datastore),
        diagnostics_(diagnostics),
        reader_(root, "a datastore file", diagnostics, {"datastore", ""}) {}

  void Read() {
    ReadName();
    const StoreType* const type = ReadType();
    if (type == nullptr) return;  // no other key is known then
    store_.place.kind = type->kind;
    store_.place.datastore = store_.name;
    const bool is_server = store_.type == kNfsType && FindEntry(root_, "server") != nullptr;
    if (is_server) {
      ReadServer();
    } else if (type->kind == StoreKind::kLocal) {
      ReadFolder();
    } else {
      ReadStore(*type);
    }
    if (const YamlNode::Entry* const entry = reader_.Take("credentials")) {
      file_.credentials = ReadCredentials(*entry, store_, diagnostics_);
      WarnOfPlainHttp();
    } else if (!is_server && type->kind != StoreKind::kLocal) {
      diagnostics_.Warning(root_.line,
                           "without credentials only public data can be read: nobody's identity is "
                           "used here");
    }
    reader_.Finish();
  }

 private:
  void ReadName() {
    const YamlNode::Entry* const entry = ReadHead(reader_, store_, diagnostics_);
    if (entry == nullptr) return diagnostics_.Error(root_.line, "the key \"name\" is missing");
    if (IsJobName(store_.name)) return;
    diagnostics_.Error(entry->line,
                       "a datastore's name is of letters, digits, \"-\" and \"_\", 128 at most");
  }

  const StoreType* ReadType() {
    const size_t before = diagnostics_.error_count();
    const YamlNode::Entry* const entry = reader_.Choice("type", kTypesOfStores, store_.type);
    if (entry == nullptr) {
      if (diagnostics_.error_count() == before) {
        diagnostics_.Error(root_.line,
                           "the key \"type\" is missing: azure_blob, azure_data_lake_gen2, "
                           "azure_file, s3, gcs, local or nfs");
      }
      return nullptr;
    }
    if (store_.type == "azure_data_lake_gen1") {
      diagnostics_.Error(entry->line,
                         "Azure has retired Data Lake Storage Gen1: move the data to "
                         "a store of type azure_data_lake_gen2");
    } else if (store_.type == "one_lake") {
      diagnostics_.Error(entry->line,
                         "OneLake is not read here: copy the data to a store of type "
                         "azure_blob or azure_data_lake_gen2");
    }
    return FindType(store_.type);
  }

  // Reads a text that must be there and of letters, digits and `others`.
  void Need(const char* key, absl::string_view others, std::string& value) {
    const YamlNode::Entry* const entry = reader_.Text(key, value);
    if (entry == nullptr || value.empty()) {
      diagnostics_.Error(root_.line, absl::StrCat("a datastore of type ", store_.type,
                                                  " needs the key \"", key, "\""));
    } else if (!IsLabel(value, others)) {
      diagnostics_.Error(entry->line,
                         absl::StrCat(key, " \"", absl::string_view(value).substr(0, 80),
                                      "\" has a character that no name of one has"));
    }
  }

  void ReadFolder() {
    std::string path;
    const YamlNode::Entry* const entry = reader_.Text("path", path);
    if (entry == nullptr || path.empty()) {
      diagnostics_.Error(root_.line, absl::StrCat("a datastore of type ", store_.type,
                                                  " needs the key \"path\": a folder that is on "
                                                  "every node",
                                                  store_.type == kNfsType
                                                      ? ", or the keys \"server\" and \"export\": "
                                                        "what each node reads without a mount"
                                                      : ""));
      return;
    }
    auto local = LocalPath(path, folder_);
    if (local.ok()) {
      store_.place.path = *std::move(local);
    } else {
      diagnostics_.Error(entry->line, local.status().message());
    }
  }

  // A server that nodes read without a mount.
  void ReadServer() {
    store_.place.kind = StoreKind::kNfs;
    std::string server, exported;
    const YamlNode::Entry* const at = reader_.Text("server", server);
    if (const auto endpoint = NfsEndpoint(server)) {
      store_.place.endpoint = *endpoint;
    } else if (at != nullptr) {
      diagnostics_.Error(at->line, "server must be HOST or HOST:PORT");
    }
    const YamlNode::Entry* const entry = reader_.Text("export", exported);
    absl::string_view path = exported;
    absl::ConsumePrefix(&path, "/");
    absl::ConsumeSuffix(&path, "/");
    if (path.empty()) {
      diagnostics_.Error(entry == nullptr ? root_.line : entry->line,
                         "a datastore with a server needs the key \"export\": what would be "
                         "mounted, as /images");
    } else if (!IsExport(path)) {
      diagnostics_.Error(entry->line, absl::StrCat("export \"", path.substr(0, 80),
                                                   "\" has a character that no name of one has"));
    } else {
      store_.place.container = std::string(path);
    }
  }

  void ReadStore(const StoreType& type) {
    const bool is_azure = !type.host.empty();
    if (is_azure) Need("account_name", "-", store_.place.account);
    Need(type.container_key, "-_.$", store_.place.container);
    if (is_azure) {
      constexpr std::array<absl::string_view, 3> kProtocols = {"https", "wasbs", "abfss"};
      std::string protocol;  // the store is spoken to by https whichever it is
      reader_.Choice("protocol", kProtocols, protocol);
    }
    if (type.kind == StoreKind::kS3) reader_.Text("region", store_.place.region);
    ReadEndpoint(type);
  }

  // A server's URL, or the domain of another of Azure's clouds.
  void ReadEndpoint(const StoreType& type) {
    std::string written;
    const YamlNode::Entry* const entry = reader_.Text("endpoint", written);
    absl::string_view endpoint = written;
    while (absl::ConsumeSuffix(&endpoint, "/")) {
    }
    if (entry == nullptr || endpoint.empty()) return;
    if (absl::StrContains(endpoint, "://")) {
      store_.place.endpoint = std::string(endpoint);
    } else if (type.host.empty()) {
      store_.place.endpoint = absl::StrCat("https://", endpoint);
    } else if (endpoint != kAzuresCloud) {
      store_.place.endpoint =
          absl::StrCat("https://", store_.place.account, ".", type.host, ".", endpoint);
    }
    if (store_.place.endpoint.empty() || IsServerUrl(store_.place.endpoint)) return;
    diagnostics_.Error(entry->line,
                       "endpoint must be a server's URL, as https://HOST:PORT, or of "
                       "Azure a cloud's domain, as core.windows.net");
  }

  void WarnOfPlainHttp() {
    const std::string& endpoint = store_.place.endpoint;
    if (store_.place.credential == CredentialKind::kNone) return;
    if (!absl::StartsWith(endpoint, "http://")) return;
    const absl::string_view host = HostOf(endpoint);
    if (IsThisMachine(host)) return;
    diagnostics_.Warning(
        FindEntry(root_, "endpoint")->line,
        absl::StrCat("requests go to ", host,
                     " by http: whoever is on the way can read and change the data, and read a "
                     "sas_token or session_token: write https:// if the server has it"));
  }

  const YamlNode& root_;
  const std::filesystem::path& folder_;
  DatastoreFile& file_;
  Datastore& store_;
  Diagnostics& diagnostics_;
  MappingReader reader_;
};

}  // namespace

absl::StatusOr<DatastoreFile> ReadDatastoreFile(absl::string_view text, absl::string_view file_name,
                                                const std::filesystem::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const auto root, ParseYaml(text, file_name));
  Diagnostics diagnostics(file_name);
  TUTTI_RETURN_IF_ERROR(CheckKind("datastore", *root, diagnostics));
  DatastoreFile file;
  FileReader(*root, folder, file, diagnostics).Read();
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  file.warnings = diagnostics.warnings();
  return file;
}

}  // namespace tutti::spec
