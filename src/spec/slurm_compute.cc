#include "spec/slurm_compute.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "spec/job_data.h"
#include "spec/mapping_reader.h"

namespace tutti::spec {
namespace {

// What says how a job is found, started or watched; sbatch takes shortened names too.
bool IsTuttis(absl::string_view option) {
  static constexpr std::array<absl::string_view, 15> kNames = {
      "--array",    "--chdir",   "--clusters", "--comment",   "--error",
      "--nodes",    "--ntasks",  "--no-kill",  "--open-mode", "--output",
      "--parsable", "--requeue", "--signal",   "--test-only", "--wrap"};
  const absl::string_view name = option.substr(0, option.find('='));
  return name.size() > 4 && std::any_of(kNames.begin(), kNames.end(), [&](absl::string_view own) {
           return absl::StartsWith(own, name);
         });
}

}  // namespace

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
    const auto path = LocalPath(shared, folder);
    if (path.ok()) compute.folder = *path;
    if (!path.ok()) diagnostics.Error(at->line, path.status().message());
  } else {
    diagnostics.Error(node.line, absl::StrCat("compute \"", name,
                                              "\" has no folder: name one that this machine and "
                                              "the nodes share"));
  }
  const std::pair<absl::string_view, std::string*> texts[] = {
      {"partition", &compute.partition},     {"account", &compute.account}, {"qos", &compute.qos},
      {"constraint", &compute.constraint},   {"gres", &compute.gres},       {"time", &compute.time},
      {"reservation", &compute.reservation}, {"memory", &compute.memory}};
  for (const auto& [key, value] : texts) reader.Text(key, *value);
  reader.Count("cpus_per_node", 65536, compute.cpus_per_node);
  reader.Flag("exclusive", compute.exclusive);
  if (const YamlNode::Entry* at = reader.Texts("options", compute.options)) {
    for (const std::string& option : compute.options) {
      if (IsTuttis(option)) {
        diagnostics.Error(at->line, absl::StrCat("\"", option.substr(0, 80), "\" is set by tutti"));
      }
      if (absl::StartsWith(option, "--")) continue;
      diagnostics.Error(at->line, absl::StrCat("\"", option.substr(0, 80),
                                               "\" is no option of sbatch: write --NAME=VALUE"));
    }
  }
  reader.Finish();
  return compute;
}

}  // namespace tutti::spec
