#include "spec/command/job_sections.h"

#include <algorithm>
#include <array>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/text/one_of.h"
#include "spec/command/container_options.h"
#include "spec/command/job_data.h"
#include "spec/command/tutti_keys.h"
#include "spec/text/expressions.h"
#include "spec/types/enum_names.h"

namespace tutti::spec {
namespace {

constexpr int kMostNodes = 100'000;
constexpr int kMostProcesses = 10'000;  // of one kind on one node
constexpr int kMostRetries = 1000;
constexpr int kLongestJob = 10 * 365 * 86'400;  // ten years
constexpr std::array<absl::string_view, 4> kPriorities = {"low", "medium", "normal", "high"};

// A section of `job`, in which the values of plain inputs may stand, as components write it.
std::optional<YamlNode::Entry> TakeSection(MappingReader& job, absl::string_view key,
                                           const JobSpec& spec) {
  const YamlNode::Entry* entry = job.Take(key);
  if (entry == nullptr) return std::nullopt;
  const auto value = [&](absl::string_view body) -> std::optional<std::string> {
    if (!absl::ConsumePrefix(&body, "inputs.")) return std::nullopt;
    const auto found = spec.inputs.find(std::string(body));
    if (found == spec.inputs.end() || found->second.absent || IsPathType(found->second.type)) {
      return std::nullopt;
    }
    return found->second.literal;
  };
  return YamlNode::Entry{entry->key, entry->line, ReplaceExpressions(entry->value, value)};
}

// Returns what job files may call distributions; who wants none writes no section.
std::vector<absl::string_view> DistributionTypes(bool with_others) {
  std::vector<absl::string_view> types;
  for (const DistributionDriver* const driver : Distributions()) {
    if (!driver->has_ranks) continue;
    types.push_back(driver->type);
    if (with_others && !driver->other_type.empty()) types.push_back(driver->other_type);
  }
  return types;
}

void ReadDistribution(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics) {
  const auto entry = TakeSection(job, "distribution", spec);
  if (!entry) return;
  MappingReader reader(*entry->value, "distribution", diagnostics, {"command", "distribution."});
  if (entry->value->kind != YamlNode::Kind::kMapping) return;
  std::string type;
  if (reader.Choice("type", DistributionTypes(true), type) == nullptr) {
    if (reader.Take("type") == nullptr) {
      diagnostics.Error(entry->line, absl::StrCat("distribution has no type: ",
                                                  base::OneOf(DistributionTypes(false))));
    }
    return;  // which keys are right depends on the type
  }
  const DistributionDriver& driver = *FindDistribution(type);
  spec.distribution.type = std::string(driver.type);
  if (driver.read != nullptr) {
    driver.read(entry->line, reader, spec, diagnostics);
  } else {
    reader.Count(driver.count_key, kMostProcesses, spec.distribution.process_count_per_instance);
  }
  reader.Finish();
}

void ReadLimits(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics) {
  const auto entry = TakeSection(job, "limits", spec);
  if (!entry) return;
  MappingReader reader(*entry->value, "limits", diagnostics, {"command", "limits."});
  int seconds = 0;
  if (reader.Count("timeout", kLongestJob, seconds) != nullptr) {
    spec.timeout = absl::Seconds(seconds);
  }
  reader.Finish();
}

// Reads `properties`, a free mapping in which each kind of compute has its own section.
void ReadProperties(MappingReader& resources, const Site& site, JobSpec& spec,
                    Diagnostics& diagnostics) {
  const YamlNode::Entry* entry = resources.Take("properties");
  if (entry == nullptr) return;
  const auto no_effect = [&](int line, absl::string_view key) {
    diagnostics.Warning(
        line, absl::StrCat("\"", key.substr(0, 80), "\" has no effect: no one reads it here"));
  };
  if (entry->value->kind != YamlNode::Kind::kMapping) no_effect(entry->line, "properties");
  for (const YamlNode::Entry& part : entry->value->entries) {
    if (part.key == "slurm") {
      spec.slurm = ReadSlurmSettings(*part.value, "resources.properties.slurm", diagnostics);
    } else if (part.key == "tutti") {
      ReadTuttiKeys(part, site, spec, diagnostics);
    } else {
      no_effect(part.line, part.key);
    }
  }
  CheckNodeShare(spec, diagnostics);
}

void ReadRetries(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics) {
  const YamlNode::Entry* entry = job.Take("retry_settings");
  if (entry == nullptr) return;
  MappingReader reader(*entry->value, "retry_settings", diagnostics,
                       {"command", "retry_settings."});
  const YamlNode::Entry* retries = reader.Take("max_retries");
  if (retries != nullptr && retries->value->scalar != "0") {
    reader.Count("max_retries", kMostRetries, spec.max_retries);
  }
  reader.Finish();
}

void ReadResume(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics) {
  const YamlNode::Entry* entry = job.Text("resume", spec.resume);
  if (entry == nullptr) return;
  spec.resume_location = {diagnostics.file_name(), entry->line};
  const bool is_name = !spec.resume.empty() && spec.resume[0] != '.' &&
                       std::all_of(spec.resume.begin(), spec.resume.end(), [](unsigned char c) {
                         return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
                       });
  if (is_name) return;
  diagnostics.Error(entry->line,
                    "resume must be the name of an earlier job, as `tutti job list` shows it");
  spec.resume.clear();
}

// "Standard_NC6s_v3", "Standard_ND96asr_v4": the families of Azure's sizes that have GPUs; names
// that clusters give to theirs.
bool IsSizeWithGpus(absl::string_view name) {
  const std::string size = absl::AsciiStrToLower(name);
  return absl::StartsWith(size, "standard_nc") || absl::StartsWith(size, "standard_nd") ||
         absl::StartsWith(size, "standard_nv") || absl::StrContains(size, "gpu");
}

// Only looked at: that the key has no other effect is said with the others that have none.
void LookAtInstanceType(const YamlNode& resources, JobSpec& spec, const Diagnostics& diagnostics) {
  for (const YamlNode::Entry& part : resources.entries) {
    if (part.key != "instance_type" || !IsSizeWithGpus(part.value->scalar)) continue;
    spec.gpu_demands.push_back({absl::StrCat("instance_type ", part.value->scalar.substr(0, 80)),
                                {diagnostics.file_name(), part.line},
                                false});
  }
}

}  // namespace

void ReadResources(MappingReader& job, const Site& site, JobSpec& spec, Diagnostics& diagnostics) {
  const auto entry = TakeSection(job, "resources", spec);
  if (!entry) return;
  MappingReader reader(*entry->value, "resources", diagnostics, {"command", "resources."});
  const ErrorWatch refused(diagnostics);
  if (const auto* count = reader.Count("instance_count", kMostNodes, spec.instance_count)) {
    spec.instance_count_location = {diagnostics.file_name(), count->line};
  } else if (refused.any()) {
    spec.instance_count = 1;  // in place of a component's, too
  }
  ForgetTuttiKeys(spec);
  spec.gpu_demands.clear();  // a step's own resources are in place of its component's
  LookAtInstanceType(*entry->value, spec, diagnostics);
  ReadContainerOptions(reader, site, spec, diagnostics);
  ReadProperties(reader, site, spec, diagnostics);
  reader.Finish();
}

void ReadQueueSettings(MappingReader& job, JobSpec& spec, Diagnostics& diagnostics) {
  const YamlNode::Entry* entry = job.Take("queue_settings");
  if (entry == nullptr) return;
  MappingReader reader(*entry->value, "queue_settings", diagnostics,
                       {"command", "queue_settings."});
  std::string priority = "medium";  // Azure ML's word for normal
  reader.Choice("priority", kPriorities, priority);
  spec.priority = *PriorityFromName(priority == "medium" ? "normal" : priority);
  reader.Finish();
}

void ReadSections(MappingReader& job, const Site& site, JobSpec& spec, Diagnostics& diagnostics) {
  ReadResources(job, site, spec, diagnostics);
  ReadDistribution(job, spec, diagnostics);  // after the nodes, which give it a default
  ReadLimits(job, spec, diagnostics);
  ReadQueueSettings(job, spec, diagnostics);
  ReadRetries(job, spec, diagnostics);
  ReadResume(job, spec, diagnostics);
}

}  // namespace tutti::spec
