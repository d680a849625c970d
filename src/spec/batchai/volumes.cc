#include "spec/batchai/volumes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "spec/batchai/batch_ai_text.h"
#include "spec/batchai/mount_command.h"
#include "spec/text/yaml_text.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kJobRoot = "AZ_BATCHAI_JOB_MOUNT_ROOT";
constexpr absl::string_view kClusterRoot = "AZ_BATCHAI_MOUNT_ROOT";
constexpr absl::string_view kPlaceholder = "<AZURE_BATCHAI_STORAGE_ACCOUNT>";
constexpr absl::string_view kEndsAPath = " \t\r\n\"'`;&|<>()$,:=*?[]{}!#\\";
// In an address of a share: what would end its host or its path, or be a password.
constexpr absl::string_view kNotInAnAddress = "?#@\\ \t\r\n\"'<>${}";
constexpr absl::string_view kAzuresDomain = "core.windows.net";
constexpr size_t kMostShownOfAPath = 200;
constexpr size_t kLongestInput = 100;  // of a volume's; with a number it is still an identifier

// The mount root that a text begins with, taken from its front; empty if there is none.
absl::string_view TakeRoot(absl::string_view& text) {
  for (const absl::string_view root : {kJobRoot, kClusterRoot}) {
    absl::string_view rest = text;
    if (absl::ConsumePrefix(&rest, absl::StrCat("${", root, "}"))) {
      text = rest;
      return root;
    }
    if (!absl::ConsumePrefix(&rest, absl::StrCat("$", root))) continue;
    if (!rest.empty() &&
        (absl::ascii_isalnum(static_cast<unsigned char>(rest[0])) || rest[0] == '_'))
      continue;
    text = rest;
    return root;
  }
  return "";
}

// Accounts and containers have such names, so that no part of an address hides in one.
bool IsNameInAzure(absl::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
  });
}

// Looks at the address of a share, which stands in the job's file, and finds what its datastore
// has to say.
bool TakeShare(Volume& volume, absl::string_view key, int line, Diagnostics& diagnostics) {
  if (const absl::string_view address = volume.address;
      address.find_first_of(kNotInAnAddress) != absl::string_view::npos) {
    diagnostics.Error(line, absl::StrCat(key,
                                         " must have an address alone, as "
                                         "https://ACCOUNT.file.core.windows.net/SHARE, without a "
                                         "token: it stands in the job's file, and the account's "
                                         "key is credentials.accountKey"));
    return false;
  }
  const ShareOfAzure share = ShareOf(volume.address);
  if (share.domain == kAzuresDomain) {
    volume.account = share.account;
    volume.container = share.name;
  } else if (!volume.account_key.empty()) {
    diagnostics.Warning(line, absl::StrCat("the account's key of ", volume.address,
                                           " is not taken over, since it is not at ", kAzuresDomain,
                                           ": make a datastore of type azure_file with endpoint "
                                           "and account_key (tutti datastore create --file FILE)"));
  }
  return true;
}

// Returns the key, which opens a datastore and stands in no job's file.
std::string TakeCredentials(MappingReader& reader, absl::string_view what, absl::string_view type,
                            Diagnostics& diagnostics) {
  const YamlNode::Entry* const entry = reader.Take("credentials");
  if (entry == nullptr) return "";
  MappingReader credentials(*entry->value, "credentials", diagnostics);
  std::string key;
  credentials.Text("accountKey", key);
  credentials.Take("accountKeySecretReference");
  credentials.Finish();
  if (!key.empty()) return key;
  diagnostics.Warning(entry->line,
                      absl::StrCat("credentials of ", what,
                                   " are in a Key Vault, which is not asked: make a datastore of "
                                   "type ",
                                   type, " with account_key (tutti datastore create --file FILE)"));
  return "";
}

}  // namespace

std::string Volume::AddressOf(absl::string_view path, bool write) const {
  std::string below =
      path.empty() ? "" : absl::StrCat("/", is_url ? EncodedPath(path) : std::string(path));
  if (is_local) return absl::StrCat(write ? "file://" : "", address, below);
  return absl::StrCat(address, below.empty() ? "/" : below);
}

std::string WithAccount(absl::string_view text, const std::string& account) {
  if (account.empty()) return std::string(text);
  return absl::StrReplaceAll(text, {{kPlaceholder, account}});
}

void Volumes::Read(const YamlNode& mounts, bool of_cluster, const std::string& storage_account,
                   Diagnostics& diagnostics) {
  knows_cluster_ |= of_cluster;
  MappingReader reader(mounts, "mountVolumes", diagnostics);
  Volume volume;
  volume.of_cluster = of_cluster;
  for (const auto& node : TakeList(reader, "azureFileShares", diagnostics)) {
    ReadShare(*node, volume, storage_account, diagnostics);
  }
  for (const auto& node : TakeList(reader, "azureBlobFileSystems", diagnostics)) {
    ReadBlobs(*node, volume, storage_account, diagnostics);
  }
  for (const auto& node : TakeList(reader, "fileServers", diagnostics)) {
    ReadServer(*node, volume, diagnostics);
  }
  for (const auto& node : TakeList(reader, "unmanagedFileSystems", diagnostics)) {
    ReadUnmanaged(*node, volume, diagnostics);
  }
  if (mounts.kind == YamlNode::Kind::kMapping) reader.Finish();
}

void Volumes::Add(Volume volume, Diagnostics& diagnostics) {
  const auto mounted_at = CleanPath(volume.mounted_at);
  if (!mounted_at || mounted_at->empty()) {
    return diagnostics.Error(
        volume.line,
        absl::StrCat("relativeMountPath \"", volume.mounted_at.substr(0, kMostShownOfAPath),
                     "\" must name a folder below the mount root"));
  }
  volume.mounted_at = *mounted_at;
  for (const Volume& other : volumes_) {
    if (other.of_cluster != volume.of_cluster || other.mounted_at != volume.mounted_at) continue;
    return diagnostics.Error(
        volume.line,
        absl::StrCat("two volumes are mounted at ", volume.mounted_at.substr(0, kMostShownOfAPath),
                     ": give one another relativeMountPath"));
  }
  volumes_.push_back(std::move(volume));
}

void Volumes::ReadShare(const YamlNode& node, Volume volume, const std::string& account,
                        Diagnostics& diagnostics) {
  constexpr absl::string_view kWhat = "an entry of azureFileShares";
  MappingReader reader(node, kWhat, diagnostics);
  std::string url, unused;
  const YamlNode::Entry* const entry =
      TakeNeeded(reader, node, kWhat, "azureFileUrl", url, diagnostics);
  reader.Text("accountName", unused);  // azureFileUrl has it
  const YamlNode::Entry* const at =
      TakeNeeded(reader, node, kWhat, "relativeMountPath", volume.mounted_at, diagnostics);
  volume.type = "azure_file";
  volume.account_key = TakeCredentials(reader, "the share", volume.type, diagnostics);
  TakeWithoutEffect(reader, "fileMode", "files have the modes that tutti gives them", diagnostics);
  TakeWithoutEffect(reader, "directoryMode", "folders have the modes that tutti gives them",
                    diagnostics);
  reader.Finish();
  if (entry == nullptr || at == nullptr) return;
  url = WithAccount(url, account);
  if (absl::StrContains(url, kPlaceholder)) {
    return diagnostics.Error(entry->line, absl::StrCat("azureFileUrl has ", kPlaceholder,
                                                       ": name the account, by "
                                                       "--storage-account-name or in the file"));
  }
  if (!absl::StartsWith(url, "https://") && !absl::StartsWith(url, "http://")) {
    return diagnostics.Error(entry->line,
                             "azureFileUrl must be https://ACCOUNT.file.core.windows.net/SHARE");
  }
  volume.address = std::string(absl::StripSuffix(url, "/"));
  if (!TakeShare(volume, "azureFileUrl", entry->line, diagnostics)) return;
  volume.is_url = true;
  volume.line = at->line;
  Add(std::move(volume), diagnostics);
}

void Volumes::ReadBlobs(const YamlNode& node, Volume volume, const std::string& account,
                        Diagnostics& diagnostics) {
  constexpr absl::string_view kWhat = "an entry of azureBlobFileSystems";
  MappingReader reader(node, kWhat, diagnostics);
  std::string name, container;
  const YamlNode::Entry* const entry =
      TakeNeeded(reader, node, kWhat, "accountName", name, diagnostics);
  const YamlNode::Entry* const of =
      TakeNeeded(reader, node, kWhat, "containerName", container, diagnostics);
  const YamlNode::Entry* const at =
      TakeNeeded(reader, node, kWhat, "relativeMountPath", volume.mounted_at, diagnostics);
  volume.type = "azure_blob";
  volume.account_key = TakeCredentials(reader, "the container", volume.type, diagnostics);
  TakeWithoutEffect(reader, "mountOptions", "blobs are fetched, and not mounted by blobfuse",
                    diagnostics);
  reader.Finish();
  if (entry == nullptr || of == nullptr || at == nullptr) return;
  name = WithAccount(name, account);
  if (absl::StrContains(name, kPlaceholder)) {
    return diagnostics.Error(entry->line, absl::StrCat("accountName is ", kPlaceholder,
                                                       ": name the account, by "
                                                       "--storage-account-name or in the file"));
  }
  if (!IsNameInAzure(name) || !IsNameInAzure(absl::StripPrefix(container, "$"))) {
    return diagnostics.Error(
        entry->line, "accountName and containerName must be names: of letters, digits and \"-\"");
  }
  volume.address = absl::StrCat("https://", name, ".blob.", kAzuresDomain, "/", container);
  volume.account = name;
  volume.container = container;
  volume.is_url = true;
  volume.line = at->line;
  Add(std::move(volume), diagnostics);
}

void Volumes::ReadServer(const YamlNode& node, Volume volume, Diagnostics& diagnostics) {
  constexpr absl::string_view kWhat = "an entry of fileServers";
  MappingReader reader(node, kWhat, diagnostics);
  const std::string server = TakeResource(reader, "fileServer", diagnostics);
  std::string source;
  const YamlNode::Entry* const from = reader.Text("sourceDirectory", source);
  const YamlNode::Entry* const at =
      TakeNeeded(reader, node, kWhat, "relativeMountPath", volume.mounted_at, diagnostics);
  TakeWithoutEffect(reader, "mountOptions", "nodes read the file server without a mount",
                    diagnostics);
  reader.Finish();
  if (at == nullptr) return;
  const auto below = CleanPath(source);
  if (server.empty()) {
    return diagnostics.Error(node.line,
                             absl::StrCat(kWhat,
                                          ": fileServer must have the id of a file server, "
                                          "whose last part is a datastore's name"));
  }
  if (!below) {
    return diagnostics.Error(from->line, "sourceDirectory leads out of what the server has");
  }
  volume.address =
      absl::StrCat("azureml://datastores/", server, "/paths", below->empty() ? "" : "/", *below);
  volume.can_write = false;
  volume.line = at->line;
  Add(std::move(volume), diagnostics);
}

void Volumes::ReadUnmanaged(const YamlNode& node, Volume volume, Diagnostics& diagnostics) {
  constexpr absl::string_view kWhat = "an entry of unmanagedFileSystems";
  MappingReader reader(node, kWhat, diagnostics);
  std::string command;
  const YamlNode::Entry* const entry =
      TakeNeeded(reader, node, kWhat, "mountCommand", command, diagnostics);
  const YamlNode::Entry* const at =
      TakeNeeded(reader, node, kWhat, "relativeMountPath", volume.mounted_at, diagnostics);
  reader.Finish();
  if (entry == nullptr || at == nullptr) return;
  Volume mounted = VolumeOfMountCommand(command);
  if (mounted.address.empty()) {
    return diagnostics.Error(
        entry->line,
        absl::StrCat("mountCommand: jobs mount nothing here, and \"",
                     ShownMountCommand(command).substr(0, kMostShownOfAPath),
                     "\" is neither an NFS server (mount -t nfs HOST:/FOLDER), a share of Azure "
                     "(mount -t cifs //ACCOUNT.file.core.windows.net/SHARE) nor a folder of the "
                     "nodes: mount it on every node, and write mount --bind /FOLDER"));
  }
  if (mounted.type == "azure_file" &&
      !TakeShare(mounted, "mountCommand", entry->line, diagnostics)) {
    return;
  }
  mounted.mounted_at = volume.mounted_at;
  mounted.of_cluster = volume.of_cluster;
  mounted.line = at->line;
  Add(std::move(mounted), diagnostics);
}

std::optional<PlaceOnVolume> Volumes::Find(absl::string_view path, std::string& why) {
  absl::string_view rest = path;
  const absl::string_view root = TakeRoot(rest);
  const auto below = CleanPath(rest);
  if (root.empty() || !below) return std::nullopt;
  PlaceOnVolume found;
  for (Volume& volume : volumes_) {
    if (volume.of_cluster != (root == kClusterRoot)) continue;
    absl::string_view inside = *below;
    if (!absl::ConsumePrefix(&inside, volume.mounted_at)) continue;
    if (!inside.empty() && !absl::ConsumePrefix(&inside, "/")) continue;
    if (found.volume != nullptr && found.volume->mounted_at.size() > volume.mounted_at.size())
      continue;
    found = {&volume, std::string(inside)};
  }
  if (found.volume != nullptr) return found;
  why = absl::StrCat("$", root, "/", below->substr(0, kMostShownOfAPath),
                     ": no volume is mounted there; ");
  if (root == kJobRoot) {
    absl::StrAppend(&why, "mountVolumes must have it");
  } else if (knows_cluster_) {
    absl::StrAppend(&why, "nodeSetup.mountVolumes of the cluster must have it");
  } else {
    absl::StrAppend(&why, "it is one of the cluster's: name the cluster's file by --cluster-file");
  }
  return std::nullopt;
}

std::string Volumes::Rewrite(absl::string_view text, int line, Diagnostics& diagnostics) {
  std::string result;
  while (!text.empty()) {
    const size_t dollar = std::min(text.find('$'), text.size());
    absl::StrAppend(&result, text.substr(0, dollar));
    text.remove_prefix(dollar);
    absl::string_view rest = text;
    if (TakeRoot(rest).empty()) {
      if (text.empty()) break;
      result += text[0];
      text.remove_prefix(1);
      continue;
    }
    const size_t begin = text.size() - rest.size();
    const size_t end = std::min(text.find_first_of(kEndsAPath, begin), text.size());
    const absl::string_view path = text.substr(0, end);
    std::string why;
    const auto place = Find(path, why);
    if (place) {
      place->volume->is_read = true;
      absl::StrAppend(&result, "${{inputs.", place->volume->input, "}}",
                      place->path.empty() ? "" : "/", place->path);
      if (absl::EndsWith(path, "/")) result += '/';  // "*" or "$X" may follow
    } else {
      absl::StrAppend(&result, path);
      // The root alone is a variable of the job's processes.
      if (!why.empty() && end - begin > 1) diagnostics.Error(line, why);
      if (why.empty()) {
        diagnostics.Warning(line, absl::StrCat(path.substr(0, kMostShownOfAPath),
                                               " is left as it is, since it has \"..\", and no "
                                               "volume is mounted there: write it without"));
      }
    }
    text.remove_prefix(end);
  }
  return result;
}

std::vector<BatchAiStore> Volumes::Stores() const {
  std::vector<BatchAiStore> stores;
  for (const Volume& volume : volumes_) {
    if (volume.account_key.empty() || volume.account.empty()) continue;
    const std::string name = absl::StrCat("batchai-", volume.account, "-", volume.container);
    std::vector<YamlNode::Entry> entries, credentials;
    AddEntry(entries, "name", QuotedNode(name));
    AddEntry(entries, "type", TextNode(volume.type));
    AddEntry(entries, "account_name", QuotedNode(volume.account));
    AddEntry(entries, volume.type == "azure_file" ? "file_share_name" : "container_name",
             QuotedNode(volume.container));
    AddEntry(credentials, "account_key", QuotedNode(volume.account_key));
    AddEntry(entries, "credentials", MappingNode(std::move(credentials)));
    stores.push_back({name, volume.AddressOf(""), YamlText(*MappingNode(std::move(entries)))});
  }
  return stores;
}

void Volumes::NameInputs(const std::set<std::string>& taken) {
  std::set<std::string> names = taken;
  for (Volume& volume : volumes_) {
    std::string name = volume.mounted_at;
    for (char& c : name) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    if (absl::ascii_isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "volume_");
    name = name.substr(0, kLongestInput);
    if (names.contains(name)) absl::StrAppend(&name, "_volume");
    const std::string stem = name;
    for (int number = 2; names.contains(name); ++number) name = absl::StrCat(stem, number);
    volume.input = name;
    names.insert(name);
  }
}

}  // namespace tutti::spec
