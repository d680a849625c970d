#include "spec/command/tutti_keys.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "spec/command/output_place.h"
#include "spec/text/mapping_reader.h"
#include "spec/types/identifier.h"

namespace tutti::spec {
namespace {

constexpr char kTuttiKey[] = "resources.properties.tutti";
constexpr int kMostCpus = 65'536;
constexpr int kMostGpus = 1024;
constexpr int64_t kLeastMemory = 1 << 20;  // Slurm counts in whole ones
constexpr size_t kMostSecrets = 64;        // of a job

// Holds what the readers of the keys fill, and what they need for it.
struct TuttiSection {
  MappingReader& keys;
  const Site& site;
  JobSpec& spec;
  NodeShare& share;
  Diagnostics& diagnostics;
};

void ReadCpus(const char* key, TuttiSection& section) {
  section.keys.Count(key, kMostCpus, section.share.cpus);
}

void ReadMemory(const char* key, TuttiSection& section) {
  std::string text;
  const YamlNode::Entry* const at = section.keys.Text(key, text);
  if (at == nullptr) return;
  const std::optional<uint64_t> bytes = base::ReadSize(text);
  if (bytes && *bytes >= kLeastMemory) {
    section.share.memory_bytes = static_cast<int64_t>(*bytes);
    return;
  }
  section.diagnostics.Error(at->line, absl::StrCat(kTuttiKey, ".", key, ": \"", text.substr(0, 80),
                                                   "\" is no size: write 500MB, 8GB or 8GiB"));
}

void ReadGpus(const char* key, TuttiSection& section) {
  const YamlNode::Entry* const gpus = section.keys.Take(key);
  if (gpus == nullptr || gpus->value->scalar == "0") return;
  section.keys.Count(key, kMostGpus, section.share.gpus);
}

struct GivenSecret {
  std::string secret;
  bool file = false;
};

GivenSecret ReadGivenSecret(const YamlNode::Entry& entry, const std::string& what,
                            Diagnostics& diagnostics) {
  GivenSecret given;
  if (entry.value->kind == YamlNode::Kind::kScalar) {
    given.secret = entry.value->scalar;
  } else if (entry.value->kind == YamlNode::Kind::kMapping) {
    MappingReader reader(*entry.value, what, diagnostics);
    reader.Text("secret", given.secret);
    reader.Flag("file", given.file);
    reader.Finish();
  }
  if (IsSecretName(given.secret)) return given;
  diagnostics.Error(entry.line,
                    absl::StrCat(what, " must name a secret, as in ", entry.key.substr(0, 80),
                                 ": my-token, or {secret: my-token, file: true}"));
  return {};
}

void ReadSecret(const YamlNode::Entry& entry, const std::string& secrets, JobSpec& spec,
                Diagnostics& diagnostics) {
  const std::string what = absl::StrCat(secrets, ".", entry.key.substr(0, 80));
  if (!IsIdentifier(entry.key)) {
    diagnostics.Error(
        entry.line, absl::StrCat(what, ": a variable's name must be of letters, digits and \"_\""));
    return;
  }
  if (spec.environment_variables.contains(entry.key)) {
    diagnostics.Error(entry.line, absl::StrCat(what,
                                               " is in environment_variables too: leave one "
                                               "of them out"));
  }
  GivenSecret given = ReadGivenSecret(entry, what, diagnostics);
  if (given.secret.empty()) return;
  (given.file ? spec.secret_files : spec.secret_variables)[entry.key] = std::move(given.secret);
}

// Reads the secrets: NAME: SECRET is a variable; NAME: {secret: SECRET, file: true} a file, whose
// path is the variable.
void ReadSecrets(const char* key, TuttiSection& section) {
  const YamlNode::Entry* const entry = section.keys.Take(key);
  if (entry == nullptr) return;
  Diagnostics& diagnostics = section.diagnostics;
  const std::string what = absl::StrCat(kTuttiKey, ".", key);
  section.spec.secrets_location = {diagnostics.file_name(), entry->line};
  if (entry->value->kind != YamlNode::Kind::kMapping) {
    diagnostics.Error(entry->line,
                      absl::StrCat(what, " must be a mapping of variables to secrets, but is ",
                                   KindName(*entry->value)));
    return;
  }
  if (entry->value->entries.size() > kMostSecrets) {
    diagnostics.Error(entry->line, absl::StrCat(what, " has more than ", kMostSecrets, " secrets"));
    return;
  }
  for (const YamlNode::Entry& secret : entry->value->entries) {
    ReadSecret(secret, what, section.spec, diagnostics);
  }
}

void ReadLogs(const char* key, TuttiSection& section) {
  const YamlNode::Entry* const entry = section.keys.Take(key);
  if (entry == nullptr) return;
  const auto refuse = [&](absl::string_view why) {
    section.diagnostics.Error(entry->line, absl::StrCat(kTuttiKey, ".", key, ": ", why));
  };
  if (entry->value->kind != YamlNode::Kind::kScalar) {
    return refuse("must be an address, as azureml://datastores/NAME/paths/PATH");
  }
  auto found = LogsPlace(entry->value->scalar, section.site);
  if (!found.ok()) return refuse(found.status().message());
  section.spec.logs_place = *std::move(found);
  section.spec.logs_location = {section.diagnostics.file_name(), entry->line};
}

// Reads which inputs are to be mounted; CheckMounts says of which that is possible.
void ReadMounts(const char* key, TuttiSection& section) {
  const YamlNode::Entry* const entry = section.keys.Texts(key, section.spec.mounts);
  if (entry == nullptr) return;
  section.spec.mounts_location = {section.diagnostics.file_name(), entry->line};
}

// A key of the section. Whichever it is, a new one also needs:
// - its member of JobSpec (spec/types/job.h), which ForgetTuttiKeys removes, and the line of that
//   member in VisitFields (spec/json/job_json.cc), so that the service and the store keep it;
// - the text of resources.properties in spec/text/azure_keys.cc, from which pages are printed, and
//   docs/formats/job-file.md;
// - a test in spec/file/job_file_test.cc.
// Where another key of its kind is acted on, in src/, is said above each row.
struct TuttiKey {
  const char* name;
  bool is_of_share;  // asks for a share of each node; the others go with whole nodes too
  void (*read)(const char* key, TuttiSection& section);
};
constexpr TuttiKey kTuttiKeys[] = {
    // platform/service/attempt/node_room.cc (virtual nodes) with platform/scheduler/resources.h and
    // reasons.cc, spec/types/asked_of_slurm.cc (Slurm),
    // platform/service/admission/submission_check.cc,
    // ReadNodeShare of spec/json/job_json.cc (the members of NodeShare),
    // platform/client/jobs/job_difference.cc (what is shown).
    {"cpus", true, ReadCpus},
    {"memory", true, ReadMemory},
    {"gpus", true, ReadGpus},
    // platform/service/admission/secret_check.cc, spec/json/launch_plan.cc with
    // platform/service/attempt/job_placement.cc (the way to the nodes),
    // platform/launch/hooks/secrets_hook.cc and platform/launch/staging/secret_folder.cc,
    // platform/flow/step_key.cc (it changes what a step makes).
    {"secrets", false, ReadSecrets},
    // platform/service/admission/place_check.cc and secret_check.cc,
    // platform/service/stored_logs/.
    {"logs", false, ReadLogs},
    // platform/launch/hooks/inputs_hook.cc, platform/launch/data/place_mount.h.
    {"mount", false, ReadMounts},
};

// Returns whether the section has more than the keys which go with whole nodes too.
bool AsksForShare(const YamlNode& tutti) {
  const auto goes_with_whole_nodes = [](const YamlNode::Entry& entry) {
    return std::any_of(std::begin(kTuttiKeys), std::end(kTuttiKeys), [&](const TuttiKey& key) {
      return !key.is_of_share && entry.key == key.name;
    });
  };
  return tutti.entries.empty() ||
         !std::all_of(tutti.entries.begin(), tutti.entries.end(), goes_with_whole_nodes);
}

}  // namespace

absl::StatusOr<DataPlace> LogsPlace(const std::string& address, const Site& site) {
  auto found = PlaceToWrite(address, site, "uri_folder", kOwnName);
  if (absl::IsNotFound(found.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(found.status().message(),
                     "; make it known by its file: tutti datastore create --file FILE"));
  }
  TUTTI_RETURN_IF_ERROR(found.status());
  if (found->has_value()) return **std::move(found);
  return absl::InvalidArgumentError(absl::StrCat("\"", address.substr(0, 80),
                                                 "\" is no place in a store: write ",
                                                 "azureml://datastores/NAME/paths/PATH"));
}

void ForgetTuttiKeys(JobSpec& spec) {
  spec.share.reset();
  spec.secret_variables.clear();
  spec.secret_files.clear();
  spec.logs_place.reset();
  spec.mounts.clear();
}

void ReadTuttiKeys(const YamlNode::Entry& tutti, const Site& site, JobSpec& spec,
                   Diagnostics& diagnostics) {
  NodeShare share;
  MappingReader keys(*tutti.value, kTuttiKey, diagnostics);
  TuttiSection section{keys, site, spec, share, diagnostics};
  for (const TuttiKey& key : kTuttiKeys) key.read(key.name, section);
  keys.Finish();
  if (!AsksForShare(*tutti.value)) return;
  spec.share = share;
  spec.share_location = {diagnostics.file_name(), tutti.line};
}

void CheckMounts(const JobSpec& spec, Diagnostics& diagnostics) {
  for (const Step& step : spec.steps) CheckMounts(step.job, diagnostics);
  for (const std::string& name : spec.mounts) {
    const auto found = spec.inputs.find(name);
    std::string why;
    if (found == spec.inputs.end()) {
      why = "the job has no such input";
    } else if (found->second.mode != "ro_mount") {
      why = absl::StrCat("its mode is ", found->second.mode, ", and what is mounted is ro_mount");
    } else if (found->second.type == "uri_file") {
      why = "it is a uri_file, and what is mounted is a folder";
    } else if (found->second.place && found->second.place->is_pattern) {
      why = "its path is a pattern, and what is mounted is a folder";
    }
    if (why.empty()) continue;
    diagnostics.Error(spec.mounts_location,
                      absl::StrCat(kTuttiKey, ".mount: input \"", name.substr(0, 80), "\": ", why));
  }
}

void CheckNodeShare(const JobSpec& spec, Diagnostics& diagnostics) {
  if (!spec.share) return;
  const auto both = [&](bool says, absl::string_view key) {
    if (!says) return;
    diagnostics.Error(spec.share_location,
                      absl::StrCat(kTuttiKey, " asks for a share of each node, and ",
                                   "resources.properties.slurm.", key,
                                   " says something else of it: leave one of them out"));
  };
  both(spec.slurm.exclusive == true, "exclusive");
  both(spec.slurm.cpus_per_node > 0, "cpus_per_node");
  both(spec.share->memory_bytes > 0 && !spec.slurm.memory.empty(), "memory");
  both(spec.share->gpus > 0 && !GpusAskedFor(spec.slurm).empty(), "gres");
  for (const GpuDemand& demand : spec.gpu_demands) {
    if (!demand.is_strict || demand.count <= static_cast<size_t>(spec.share->gpus)) continue;
    diagnostics.Error(demand.location,
                      absl::StrCat(demand.what, " asks for more GPUs than ", kTuttiKey,
                                   ".gpus, which is ", spec.share->gpus, ": write as many there"));
  }
}

}  // namespace tutti::spec
