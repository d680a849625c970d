#include "spec/site/slurm_compute.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "spec/data/local_path.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/enum_names.h"
#include "spec/types/node_folder.h"

namespace tutti::spec {
namespace {

// Returns whether the option says how a job is found, started or watched. sbatch takes names that
// are cut short, of which none has fewer than two letters; "--no" may be too many to mean one.
bool IsTuttis(absl::string_view option) {
  static constexpr std::array<absl::string_view, 20> kNames = {
      "--array",     "--chdir",   "--clusters",  "--comment", "--error",    "--help",    "--nodes",
      "--ntasks",    "--no-kill", "--open-mode", "--output",  "--parsable", "--requeue", "--signal",
      "--test-only", "--version", "--wait",      "--wrap",    "--job-name", "--usage"};
  const absl::string_view name = option.substr(0, option.find('='));
  return name.size() >= 4 && name != "--no" &&
         std::any_of(kNames.begin(), kNames.end(),
                     [&](absl::string_view own) { return absl::StartsWith(own, name); });
}

// Returns whether the option is one by which a node's one launcher is given its share: its step
// would undo other words for it.
bool IsOfTheShape(absl::string_view option) {
  const absl::string_view name = option.substr(0, option.find('='));
  return absl::StartsWith(name, "--ntasks-per-") || absl::StartsWith(name, "--minc") ||
         absl::StartsWith(name, "--cpus-per-t");
}

// The keys that a compute and a job share.
void ReadKeys(MappingReader& reader, SlurmSettings& settings, Diagnostics& diagnostics) {
  for (const SlurmText& text : kSlurmTexts) reader.Text(text.key, settings.*text.member);
  reader.Count("cpus_per_node", 65536, settings.cpus_per_node);
  bool exclusive = false;
  if (reader.Flag("exclusive", exclusive) != nullptr) settings.exclusive = exclusive;
  if (const YamlNode::Entry* at = reader.Texts("options", settings.options)) {
    for (const std::string& option : settings.options) {
      if (IsTuttis(option)) {
        diagnostics.Error(at->line, absl::StrCat("\"", option.substr(0, 80), "\" is set by tutti"));
      } else if (IsOfTheShape(option)) {
        diagnostics.Error(at->line, absl::StrCat("\"", option.substr(0, 80),
                                                 "\" is set by tutti: write cpus_per_node, and in "
                                                 "the job process_count_per_instance"));
      }
      if (absl::StartsWith(option, "--")) continue;
      diagnostics.Error(at->line, absl::StrCat("\"", option.substr(0, 80),
                                               "\" is no option of sbatch: write --NAME=VALUE"));
    }
  }
}

}  // namespace

SlurmSettings ReadSlurmSettings(const YamlNode& node, const std::string& what,
                                Diagnostics& diagnostics) {
  SlurmSettings settings;
  MappingReader reader(node, what, diagnostics);
  ReadKeys(reader, settings, diagnostics);
  reader.Finish();
  return settings;
}

std::optional<std::string> NodeFolder(absl::string_view folder) {
  if (!absl::ConsumePrefix(&folder, "node:")) return std::nullopt;
  return std::string(folder);
}

SlurmCompute ReadSlurmCompute(const YamlNode& node, const std::string& name,
                              const std::string& folder, Diagnostics& diagnostics) {
  SlurmCompute compute;
  MappingReader reader(node, absl::StrCat("compute \"", name, "\""), diagnostics);
  static constexpr std::array<absl::string_view, 1> kTypes = {"slurm"};
  std::string type, shared;
  if (reader.Choice("type", kTypes, type) == nullptr) {
    diagnostics.Error(node.line, absl::StrCat("compute \"", name, "\" has no type: slurm"));
  }
  if (const YamlNode::Entry* at = reader.Text("folder", shared)) {
    const auto own = NodeFolder(shared);
    const auto path = own ? shared : LocalPath(shared, folder);
    if (path.ok()) compute.folder = *path;
    if (!path.ok()) diagnostics.Error(at->line, path.status().message());
    if (own && !absl::StartsWith(*own, "/")) {
      diagnostics.Error(at->line, "node: is followed by a path on the nodes, which begins with /");
    }
  } else {
    diagnostics.Error(node.line, absl::StrCat("compute \"", name,
                                              "\" has no folder: name one that this machine and "
                                              "the nodes share, or node:/tmp"));
  }
  static constexpr std::array<absl::string_view, 2> kWays = {"service", "folder"};
  std::string way;
  if (const YamlNode::Entry* at = reader.Choice("reach", kWays, way)) {
    compute.reach = way == "folder" ? Reach::kFolder : Reach::kService;
    if (way == "folder" && NodeFolder(compute.folder)) {
      diagnostics.Error(at->line, "reach: folder needs a folder that the nodes share");
    }
  }
  reader.TextMap("priority_qos", compute.priority_qos);
  for (const auto& [priority, qos] : compute.priority_qos) {
    if (PriorityFromName(priority)) continue;
    diagnostics.Error(node.line, absl::StrCat("priority_qos: \"", priority.substr(0, 80),
                                              "\" is no priority: high, normal or low"));
  }
  ReadKeys(reader, compute, diagnostics);
  reader.Finish();
  return compute;
}

}  // namespace tutti::spec
