#include "spec/batchai/batch_ai_cluster.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "spec/batchai/batch_ai_text.h"
#include "spec/batchai/mount_command.h"
#include "spec/batchai/volumes.h"
#include "spec/json/json_fields.h"
#include "spec/text/yaml_text.h"

namespace tutti::spec {
namespace {

using nlohmann::json;
using Entries = std::vector<YamlNode::Entry>;

constexpr int kMostNodesOfACluster = 100'000;
constexpr absl::string_view kOwnNodes =
    "nodes are those that are there, and none is bought: a compute is a name for them";

// The tree as JSON, with the account that the file leaves open, as addresses alone: without
// credentials and without what mounts are given, which may be a password.
json WithoutCredentials(const YamlNode& node, const std::string& account) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      return nullptr;
    case YamlNode::Kind::kScalar:
      return WithAccount(node.scalar, account);
    case YamlNode::Kind::kSequence: {
      json list = json::array();
      for (const YamlPointer& item : node.items) list.push_back(WithoutCredentials(*item, account));
      return list;
    }
    case YamlNode::Kind::kMapping:
      break;
  }
  json mapping = json::object();
  for (const YamlNode::Entry& entry : node.entries) {
    if (entry.key == "credentials" || entry.key == "mountOptions") continue;
    mapping[entry.key] = entry.key == "mountCommand"
                             ? json(MountCommandOf(VolumeOfMountCommand(entry.value->scalar)))
                             : WithoutCredentials(*entry.value, account);
  }
  return mapping;
}

// The most nodes that the cluster ever had; 0: it says none.
int MostNodesOf(MappingReader& properties, Diagnostics& diagnostics) {
  const YamlNode::Entry* const scale = properties.Take("scaleSettings");
  if (scale == nullptr) return 0;
  int most = 0;
  MappingReader reader(*scale->value, "scaleSettings", diagnostics);
  if (const YamlNode::Entry* const manual = reader.Take("manual")) {
    MappingReader settings(*manual->value, "manual", diagnostics);
    const YamlNode::Entry* const target = FindValue(*manual->value, "targetNodeCount");
    if (target != nullptr && target->value->scalar == "0") {
      settings.Take("targetNodeCount");
    } else {
      settings.Count("targetNodeCount", kMostNodesOfACluster, most);
    }
    TakeWithoutEffect(settings, "nodeDeallocationOption", kOwnNodes, diagnostics);
    settings.Finish();
  }
  if (const YamlNode::Entry* const automatic = reader.Take("autoScale")) {
    MappingReader settings(*automatic->value, "autoScale", diagnostics);
    settings.Count("maximumNodeCount", kMostNodesOfACluster, most);
    TakeWithoutEffect(settings, "minimumNodeCount", kOwnNodes, diagnostics);
    TakeWithoutEffect(settings, "initialNodeCount", kOwnNodes, diagnostics);
    settings.Finish();
  }
  reader.Finish();
  return most;
}

// The volumes of all jobs; null if there are none.
json ReadSetup(MappingReader& properties, const std::string& storage_account,
               std::vector<BatchAiStore>& stores, Diagnostics& diagnostics) {
  const YamlNode::Entry* const setup = properties.Take("nodeSetup");
  if (setup == nullptr) return nullptr;
  MappingReader reader(*setup->value, "nodeSetup", diagnostics);
  TakeWithoutEffect(reader, "setupTask",
                    "run its commandLine once on the nodes (tutti node exec), or as a job's "
                    "jobPreparation",
                    diagnostics);
  TakeWithoutEffect(reader, "performanceCountersSettings",
                    "tutti's own metrics are at /metrics of the service", diagnostics);
  const YamlNode::Entry* const mounts = reader.Take("mountVolumes");
  reader.Finish();
  if (mounts == nullptr) return nullptr;
  Volumes volumes;
  volumes.Read(*mounts->value, /*of_cluster=*/true, storage_account, diagnostics);
  stores = volumes.Stores();
  return WithoutCredentials(*mounts->value, storage_account);
}

}  // namespace

absl::StatusOr<BatchAiCluster> ConvertBatchAiCluster(absl::string_view text,
                                                     absl::string_view file_name,
                                                     const std::string& name,
                                                     const std::string& storage_account) {
  TUTTI_ASSIGN_OR_RETURN(const YamlPointer root, ParseJsonWithLines(text, file_name));
  Diagnostics diagnostics(file_name);
  const YamlNode* const node = PropertiesOf(*root, "cluster", diagnostics);
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  MappingReader reader(*node, "properties", diagnostics);
  for (const absl::string_view key :
       {"vmSize", "vmPriority", "virtualMachineConfiguration", "subnet", "location"}) {
    TakeWithoutEffect(reader, key, kOwnNodes, diagnostics);
  }
  TakeWithoutEffect(reader, "userAccountSettings", "nodes have the users that they have",
                    diagnostics);
  const int most = MostNodesOf(reader, diagnostics);
  std::vector<BatchAiStore> stores;
  const json mounts = ReadSetup(reader, storage_account, stores, diagnostics);
  reader.Finish();
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  Entries compute;
  AddEntry(compute, "name", QuotedNode(name));
  AddEntry(compute, "type", TextNode("amlcompute"));
  if (most > 0) AddEntry(compute, "max_instances", TextNode(absl::StrCat(most)));
  const json volumes = {{"properties", {{"nodeSetup", {{"mountVolumes", mounts}}}}}};
  return BatchAiCluster{YamlText(*MappingNode(std::move(compute))), Dump(volumes),
                        diagnostics.warnings(), std::move(stores)};
}

absl::StatusOr<BatchAiFileServer> ConvertBatchAiFileServer(absl::string_view text,
                                                           absl::string_view file_name,
                                                           const std::string& name,
                                                           const FileServerPlace& place) {
  TUTTI_ASSIGN_OR_RETURN(const YamlPointer root, ParseJsonWithLines(text, file_name));
  Diagnostics diagnostics(file_name);
  const YamlNode* const node = PropertiesOf(*root, "file server", diagnostics);
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  MappingReader reader(*node, "properties", diagnostics);
  constexpr absl::string_view kOwnMachine =
      "the server is a process of this machine, on a folder of it";
  for (const absl::string_view key :
       {"vmSize", "dataDisks", "sshConfiguration", "subnet", "location"}) {
    TakeWithoutEffect(reader, key, kOwnMachine, diagnostics);
  }
  reader.Finish();
  TUTTI_RETURN_IF_ERROR(diagnostics.status());
  Entries server;
  AddEntry(server, "name", QuotedNode(name));
  AddEntry(server, "folder", QuotedNode(place.folder));
  if (!place.address.empty()) AddEntry(server, "address", QuotedNode(place.address));
  if (place.port != 0) AddEntry(server, "port", TextNode(absl::StrCat(place.port)));
  if (!place.clients.empty()) {
    auto clients = std::make_shared<YamlNode>();
    clients->kind = YamlNode::Kind::kSequence;
    for (const std::string& client : place.clients) clients->items.push_back(QuotedNode(client));
    AddEntry(server, "clients", clients);
  }
  return BatchAiFileServer{YamlText(*MappingNode(std::move(server))), diagnostics.warnings()};
}

}  // namespace tutti::spec
