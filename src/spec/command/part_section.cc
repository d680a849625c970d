#include "spec/command/part_section.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/binary_size.h"
#include "spec/command/logs_section.h"
#include "spec/command/secret_section.h"
#include "spec/text/mapping_reader.h"

namespace tutti::spec {
namespace {

constexpr char kKey[] = "resources.properties.tutti";
constexpr int kMostCpus = 65'536;
constexpr int kMostGpus = 1024;
constexpr int64_t kLeastMemory = 1 << 20;  // Slurm counts in whole ones

void ReadMemory(MappingReader& reader, PartOfNode& part, Diagnostics& diagnostics) {
  std::string text;
  const YamlNode::Entry* const at = reader.Text("memory", text);
  if (at == nullptr) return;
  const std::optional<uint64_t> bytes = base::ReadSize(text);
  if (bytes && *bytes >= kLeastMemory) {
    part.memory_bytes = static_cast<int64_t>(*bytes);
    return;
  }
  diagnostics.Error(at->line, absl::StrCat(kKey, ".memory: \"", text.substr(0, 80),
                                           "\" is no size: write 500MB, 8GB or 8GiB"));
}

// Returns whether the mapping has more than the keys which go with whole nodes too.
bool AsksForPart(const YamlNode& tutti) {
  return tutti.entries.empty() ||
         std::any_of(tutti.entries.begin(), tutti.entries.end(), [](const YamlNode::Entry& entry) {
           return entry.key != "secrets" && entry.key != "logs";
         });
}

}  // namespace

void ReadNodePart(const YamlNode::Entry& entry, const Datastores& datastores, JobSpec& spec,
                  Diagnostics& diagnostics) {
  PartOfNode part;
  MappingReader reader(*entry.value, kKey, diagnostics);
  reader.Count("cpus", kMostCpus, part.cpus);
  ReadMemory(reader, part, diagnostics);
  const YamlNode::Entry* const gpus = reader.Take("gpus");
  if (gpus != nullptr && gpus->value->scalar != "0") reader.Count("gpus", kMostGpus, part.gpus);
  if (const YamlNode::Entry* secrets = reader.Take("secrets")) {
    ReadSecrets(*secrets, spec, diagnostics);
  }
  if (const YamlNode::Entry* logs = reader.Take("logs")) {
    ReadLogs(*logs, datastores, spec, diagnostics);
  }
  reader.Finish();
  if (!AsksForPart(*entry.value)) return;
  spec.part = part;
  spec.part_location = {diagnostics.file_name(), entry.line};
}

void CheckNodePart(const JobSpec& spec, Diagnostics& diagnostics) {
  if (!spec.part) return;
  const auto both = [&](bool says, absl::string_view key) {
    if (!says) return;
    diagnostics.Error(
        spec.part_location,
        absl::StrCat(kKey, " asks for a part of each node, and ", "resources.properties.slurm.",
                     key, " says something else of ", "it: leave one of them out"));
  };
  both(spec.slurm.exclusive == true, "exclusive");
  both(spec.slurm.cpus_per_node > 0, "cpus_per_node");
  both(spec.part->memory_bytes > 0 && !spec.slurm.memory.empty(), "memory");
  both(spec.part->gpus > 0 && !GpusAskedFor(spec.slurm).empty(), "gres");
  for (const GpuDemand& demand : spec.gpu_demands) {
    if (!demand.is_strict || demand.count <= static_cast<size_t>(spec.part->gpus)) continue;
    diagnostics.Error(demand.location,
                      absl::StrCat(demand.what, " asks for more GPUs than ", kKey, ".gpus, which ",
                                   "is ", spec.part->gpus, ": write as many there"));
  }
}

}  // namespace tutti::spec
