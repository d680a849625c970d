// Covers: other_kinds.cc.
#include "spec/text/azure_keys.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "spec/data/datastore_file.h"
#include "spec/file/asset_file.h"
#include "spec/file/job_file.h"
#include "spec/file/model_file.h"
#include "spec/site/compute_file.h"
#include "spec/text/yaml_tree.h"
#include "spec/types/slurm_settings.h"

namespace tutti::spec {
namespace {
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The keys of the published schemas (azure-ai-ml's schema classes and the pages reference-yaml-*),
// as Azure ML writes them down.
const std::map<std::string, std::string>& PublishedKeys() {
  static const auto* const keys = new std::map<std::string, std::string>{
      {"command",
       "$schema type name display_name experiment_name description tags properties command code "
       "environment environment_variables compute identity services parent_job_name "
       "creation_context id status log_files inputs.*.type inputs.*.path inputs.*.mode "
       "inputs.*.value inputs.*.datastore outputs.*.type outputs.*.path outputs.*.mode "
       "outputs.*.name outputs.*.version distribution.type "
       "distribution.process_count_per_instance distribution.worker_count "
       "distribution.parameter_server_count distribution.port distribution.address "
       "distribution.include_dashboard distribution.dashboard_port "
       "distribution.head_node_additional_args distribution.worker_node_additional_args "
       "resources.instance_count resources.instance_type resources.locations "
       "resources.max_instance_count resources.properties resources.shm_size "
       "resources.docker_args limits.timeout queue_settings.job_tier queue_settings.priority "
       "services.*.job_service_type services.*.port services.*.nodes services.*.properties "
       "services.*.endpoint services.*.status services.*.error_message identity.type "
       "identity.client_id identity.object_id identity.msi_resource_id"},
      {"environment",
       "$schema name version description tags properties id creation_context build.path "
       "build.dockerfile_path image conda_file os_type datastore inference_config.liveness_route "
       "inference_config.readiness_route inference_config.scoring_route"},
      {"pipeline",
       "$schema type name display_name experiment_name description tags properties compute "
       "identity services settings.default_datastore settings.default_compute "
       "settings.continue_on_step_failure settings.force_rerun settings.on_init "
       "settings.on_finalize inputs outputs jobs jobs.*.component jobs.*.trial"},
      {"sweep",
       "$schema type name display_name experiment_name description tags properties compute "
       "identity services inputs outputs trial.command trial.code trial.environment "
       "trial.environment_variables trial.distribution trial.resources trial.queue_settings "
       "sampling_algorithm search_space objective.goal objective.primary_metric "
       "early_termination limits.max_concurrent_trials limits.max_total_trials limits.timeout "
       "limits.trial_timeout queue_settings.job_tier resources.instance_count"},
      {"component",
       "$schema name version id type display_name description tags is_deterministic inputs.*.type "
       "inputs.*.optional inputs.*.default inputs.*.description inputs.*.max inputs.*.min "
       "inputs.*.enum inputs.*.mode outputs.*.type outputs.*.description outputs.*.mode "
       "outputs.*.is_control command code additional_includes environment resources distribution "
       "properties creation_context latest_version outputs.*.early_available jobs"},
      {"data", "$schema name id version description tags properties path type datastore"},
      {"model",
       "$schema name id version description tags properties path type datastore flavors stage "
       "creation_context utc_time_created job_name latest_version"},
      {"datastore",
       "$schema name type description tags account_name container_name filesystem file_share_name "
       "store_name endpoint protocol credentials credentials.account_key credentials.sas_token "
       "credentials.tenant_id credentials.client_id credentials.client_secret "
       "credentials.resource_url credentials.authority_url credentials.certificate "
       "credentials.thumbprint one_lake_workspace_name artifact.type artifact.name properties id"},
      {"compute",
       "$schema name id type location description provisioning_errors created_on "
       "provisioning_state resource_id size tier min_instances max_instances "
       "idle_time_before_scale_down ssh_public_access_enabled ssh_settings.admin_username "
       "ssh_settings.admin_password ssh_settings.ssh_key_value network_settings.vnet_name "
       "network_settings.subnet identity.type identity.user_assigned_identities "
       "enable_node_public_ip create_on_behalf_of schedules idle_time_before_shutdown "
       "custom_applications setup_scripts namespace"}};
  return *keys;
}

TEST(AzureKeys, EveryPublishedKeyHasAnOutcome) {
  for (const auto& [schema, keys] : PublishedKeys()) {
    for (const absl::string_view key : absl::StrSplit(keys, ' ')) {
      EXPECT_NE(FindAzureKey(schema, key), nullptr) << schema << ": " << key;
    }
  }
}

TEST(AzureKeys, NoKeyStandsTwiceAndWhatIsNotDoneHasAReason) {
  std::set<std::string> seen;
  for (const AzureKey& row : AzureKeys()) {
    EXPECT_TRUE(seen.insert(absl::StrCat(row.schema, ":", row.key)).second) << row.key;
    EXPECT_TRUE(row.outcome == KeyOutcome::kDone || !row.note.empty()) << row.key;
    EXPECT_TRUE(PublishedKeys().contains(std::string(row.schema)));
  }
}

// A job file that has the key, and nothing beside it that could be said.
const std::map<std::string, std::string>& CommandSamples() {
  static const auto* const samples = new std::map<std::string, std::string>{
      {"$schema", "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"},
      {"type", "type: command"},
      {"name", "name: n"},
      {"display_name", "display_name: n"},
      {"description", "description: n"},
      {"tags", "tags: {a: b}"},
      {"experiment_name", "experiment_name: e"},
      {"command", ""},
      {"code", "code: ./src"},
      {"environment", "environment: azureml:AzureML-openmpi4.1-ubuntu20.04@latest"},
      {"environment_variables", "environment_variables: {A: 1}"},
      {"compute", "compute: azureml:local"},
      {"inputs", "inputs: {a: 1}"},
      {"inputs.*", "inputs: {a: x}"},
      {"inputs.*.type", "inputs: {a: {type: uri_file, path: f}}"},
      {"inputs.*.path", "inputs: {a: {path: f}}"},
      {"inputs.*.mode", "inputs: {a: {path: f, mode: download}}"},
      {"inputs.*.default", "inputs: {a: {type: number, default: 1}}"},
      {"inputs.*.value", "inputs: {a: {value: 1}}"},
      {"inputs.*.optional", "inputs: {a: {type: number, optional: true}}"},
      {"inputs.*.min", "inputs: {a: {type: number, default: 1, min: 0}}"},
      {"inputs.*.max", "inputs: {a: {type: number, default: 1, max: 2}}"},
      {"inputs.*.enum", "inputs: {a: {type: string, default: x, enum: [x, y]}}"},
      {"inputs.*.description", "inputs: {a: {path: f, description: d}}"},
      {"inputs.*.datastore", "inputs: {a: {path: f, datastore: d}}"},
      {"outputs", "outputs: {a: }"},
      {"outputs.*", "outputs: {a: {}}"},
      {"outputs.*.type", "outputs: {a: {type: mlflow_model}}"},
      {"outputs.*.mode", "outputs: {a: {mode: upload}}"},
      {"outputs.*.path", "outputs: {a: {path: 's3://b/x'}}"},
      {"outputs.*.name", "outputs: {a: {name: n}}"},
      {"outputs.*.version", "outputs: {a: {version: 1}}"},
      {"outputs.*.description", "outputs: {a: {description: d}}"},
      {"distribution", "distribution: {type: mpi}"},
      {"distribution.type", "distribution: {type: PyTorch}"},
      {"distribution.process_count_per_instance",
       "distribution: {type: mpi, process_count_per_instance: 2}"},
      {"distribution.worker_count", "distribution: {type: tensorflow, worker_count: 2}"},
      {"distribution.parameter_server_count",
       "distribution: {type: tensorflow, parameter_server_count: 1}"},
      {"distribution.port", "distribution: {type: ray, port: 1}"},
      {"distribution.address", "distribution: {type: ray, address: a}"},
      {"distribution.include_dashboard", "distribution: {type: ray, include_dashboard: true}"},
      {"distribution.dashboard_port", "distribution: {type: ray, dashboard_port: 1}"},
      {"distribution.head_node_additional_args",
       "distribution: {type: ray, head_node_additional_args: x}"},
      {"distribution.worker_node_additional_args",
       "distribution: {type: ray, worker_node_additional_args: x}"},
      {"resources", "resources: {instance_count: 1}"},
      {"resources.instance_count", "resources: {instance_count: 2}"},
      {"resources.shm_size", "environment: {image: 'a.example/b:1'}\nresources: {shm_size: 2g}"},
      {"resources.docker_args",
       "environment: {image: 'a.example/b:1'}\nresources: {docker_args: '--cap-drop SYS_PTRACE'}"},
      {"resources.properties", "resources: {properties: {slurm: {qos: high}}}"},
      {"retry_settings", "retry_settings: {max_retries: 1}"},
      {"retry_settings.max_retries", "retry_settings: {max_retries: 2}"},
      {"resume", "resume: earlier.train"},
      {"limits", "limits: {timeout: 1}"},
      {"limits.timeout", "limits: {timeout: 1}"},
      {"queue_settings", "queue_settings: {priority: low}"},
      {"queue_settings.priority", "queue_settings: {priority: high}"}};
  return *samples;
}

// "a.b: x" of "a.b" below the mapping that the key stands in: services.*.port -> services: {x:
// {port: v}}.
std::string PlainSample(absl::string_view key) {
  std::string open, close;
  for (const absl::string_view part : absl::StrSplit(key, '.')) {
    absl::StrAppend(&open, open.empty() ? "" : "{", part == "*" ? "x" : part, ": ");
    close += open.find('{') == std::string::npos ? "" : "}";
  }
  return absl::StrCat(open, "v", close);
}

// The row that says the outcome: a key below one without effect is not looked at.
const AzureKey& Decisive(const AzureKey& row) {
  for (size_t dot = row.key.find('.'); dot != absl::string_view::npos;
       dot = row.key.find('.', dot + 1)) {
    const AzureKey* above = FindAzureKey(row.schema, row.key.substr(0, dot));
    if (above != nullptr && above->outcome != KeyOutcome::kDone) return *above;
  }
  return row;
}

void ExpectOutcome(const AzureKey& row, const std::string& text,
                   const std::map<std::string, std::string>& files = {}) {
  const AzureKey& decisive = Decisive(row);
  const auto result =
      ReadJobFile(text, "job.yml", "/base", BuiltInSite(),
                  [&](const std::filesystem::path& file) -> absl::StatusOr<std::string> {
                    const auto found = files.find(file.filename().string());
                    if (found == files.end()) return absl::NotFoundError(file.string());
                    return found->second;
                  });
  const std::string name =
      absl::StrCat("\"", decisive.key.substr(decisive.key.rfind('.') + 1), "\"");
  if (row.outcome == KeyOutcome::kRefused) {
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(std::string(row.note))) << text;
    return;
  }
  ASSERT_TRUE(result.ok()) << text << "\n" << result.status();
  if (row.outcome == KeyOutcome::kDone) {
    EXPECT_THAT(result->warnings, IsEmpty()) << text;
  } else {
    EXPECT_THAT(result->warnings, Contains(HasSubstr(absl::StrCat(name, " has no effect"))))
        << text;
  }
}

TEST(AzureKeys, TheCommandJobsReaderDoesWhatTheTableSays) {
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "command") continue;
    const auto sample = CommandSamples().find(std::string(row.key));
    EXPECT_TRUE(sample != CommandSamples().end() || row.outcome == KeyOutcome::kNoEffect)
        << "no sample of " << row.key;
    ExpectOutcome(
        row, absl::StrCat("command: x\n", sample == CommandSamples().end() ? PlainSample(row.key)
                                                                           : sample->second));
  }
}

TEST(AzureKeys, TheEnvironmentsReaderDoesWhatTheTableSays) {
  const std::map<std::string, std::string> samples = {
      {"$schema", "image: python\n$schema: x"},
      {"name", "image: python\nname: n"},
      {"version", "image: python\nversion: 1"},
      {"description", "image: python\ndescription: d"},
      {"tags", "image: python\ntags: {a: b}"},
      {"image", "image: python:3.11"},
      {"conda_file", "conda_file: conda.yml"},
      {"build", "build: {path: context}"},
      {"build.path", "build: {path: context}"},
      {"build.dockerfile_path", "build: {path: context, dockerfile_path: Other}"},
      {"os_type", "image: python\nos_type: Linux"},
      {"as_of_pins", "image: python\nas_of_pins: false"}};
  const std::map<std::string, std::string> files = {{"conda.yml", "dependencies: [numpy]"},
                                                    {"Dockerfile", "FROM python:3.11"},
                                                    {"Other", "FROM python:3.11"}};
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "environment") continue;
    const auto sample = samples.find(std::string(row.key));
    EXPECT_TRUE(sample != samples.end() || row.outcome == KeyOutcome::kNoEffect) << row.key;
    std::string text = "command: x\nenvironment:\n";
    const std::string lines = sample == samples.end()
                                  ? absl::StrCat("image: python\n", PlainSample(row.key))
                                  : sample->second;
    for (const absl::string_view line : absl::StrSplit(lines, '\n')) {
      absl::StrAppend(&text, "  ", line, "\n");
    }
    ExpectOutcome(row, text, files);
  }
}

// One file that has every key of its schema that is done.
constexpr char kPipeline[] =
    R"($schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
name: p
display_name: p
description: d
tags: {a: b}
experiment_name: e
compute: local
settings:
  {default_compute: local, continue_on_step_failure: true, force_rerun: true, on_init: a,
   on_finalize: b}
inputs: {n: 1, d: {type: uri_file, path: f, mode: download}}
outputs: {o: {type: uri_folder, mode: upload, path: 's3://b/x'}}
jobs:
  a:
    type: command
    component: ./component.yml
    name: a
    display_name: a
    description: a
    tags: {a: b}
    experiment_name: e
    inputs: {s: "${{parent.inputs.n}}"}
    outputs: {o: {mode: upload}}
    compute: local
    environment: host
    environment_variables: {A: 1}
    distribution: {type: mpi}
    resources: {instance_count: 1}
    limits: {timeout: 1}
    queue_settings: {priority: low}
  b:
    command: x
    code: ./src
    environment: host
  c:
    type: sweep
    trial: {command: x}
    search_space: {x: {type: choice, values: [1]}}
    sampling_algorithm: grid
    objective: {goal: minimize, primary_metric: m}
    early_termination: {type: median_stopping}
)";

constexpr char kPipelineOfComponent[] = "type: pipeline\ncomponent: ./whole.yml\n";

constexpr char kSweep[] =
    R"($schema: https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json
type: sweep
name: s
display_name: s
description: d
tags: {a: b}
experiment_name: e
compute: local
inputs: {d: {type: uri_file, path: f, mode: download}}
outputs: {o: {type: uri_folder, mode: upload, path: 's3://b/${{name}}'}}
trial:
  {command: x, code: ./src, environment: {image: a.example/b}, environment_variables: {A: 1},
   distribution: {type: mpi}, resources: {instance_count: 1}, queue_settings: {priority: low}}
sampling_algorithm: {type: random, seed: 1, rule: sobol, logbase: 10}
search_space:
  a: {type: choice, values: [1]}
  b: {type: randint, upper: 2}
  c: {type: quniform, min_value: 0, max_value: 1, q: 0.5}
  d: {type: normal, mu: 0, sigma: 1}
objective: {goal: minimize, primary_metric: m}
early_termination: {type: EARLY}
limits: {max_total_trials: 1, max_concurrent_trials: 1, timeout: 1, trial_timeout: 1}
queue_settings: {priority: low}
resources: {instance_count: 1, shm_size: 1g, docker_args: --rm, properties: {slurm: {qos: q}}}
)";

constexpr char kComponent[] = R"($schema: x
type: command
name: c
version: 1
display_name: c
description: d
tags: {a: b}
is_deterministic: false
additional_includes: [../shared]
inputs:
  s: {type: number, description: d, default: 1, mode: direct, min: 0, max: 2}
  t: {type: string, optional: true, enum: [x, y]}
outputs: {o: {type: uri_folder, description: d, mode: upload}}
command: x
code: ./src
environment: host
environment_variables: {A: 1}
resources: {instance_count: 1, properties: {slurm: {qos: q}}}
distribution: DISTRIBUTION
)";

absl::StatusOr<ReadResult> ReadWith(const std::string& text, const std::string& component) {
  return ReadJobFile(text, "job.yml", "/base", BuiltInSite(),
                     [&](const std::filesystem::path& file) -> absl::StatusOr<std::string> {
                       if (file.filename() == "component.yml") return component;
                       if (file.filename() == "whole.yml")
                         return "jobs: {a: {command: x, environment: host}}";
                       return absl::NotFoundError(file.string());
                     });
}

// "inputs.*.type" of a tree; "*" is any key.
bool HasKey(const YamlNode& node, absl::string_view key) {
  const absl::string_view first = key.substr(0, key.find('.'));
  for (const YamlNode::Entry& entry : node.entries) {
    if (first != "*" && entry.key != first) continue;
    if (first.size() == key.size()) return true;
    if (HasKey(*entry.value, key.substr(first.size() + 1))) return true;
  }
  return false;
}

std::string With(absl::string_view text, absl::string_view location, absl::string_view value) {
  return absl::StrReplaceAll(text, {{location, value}});
}

constexpr char kUsesComponent[] = "type: pipeline\njobs: {a: {component: ./component.yml}}\n";

// All variants of the file together have each key that is done, and say nothing about any.
void ExpectAllDone(absl::string_view schema, const std::vector<std::string>& variants,
                   const std::vector<std::string>& lines) {
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != schema || row.outcome != KeyOutcome::kDone) continue;
    bool found = row.schema == "component" && row.key == "jobs";  // of a pipeline component
    for (const std::string& variant : variants) {
      found = found || HasKey(**ParseYaml(variant, "job.yml"), row.key);
    }
    EXPECT_TRUE(found) << "no sample of " << schema << ": " << row.key;
  }
  for (const std::string& line : lines) {
    const std::string& component = schema == "component" ? line : kComponent;
    const auto result = ReadWith(schema == "component" ? kUsesComponent : line,
                                 With(component, "DISTRIBUTION", "{type: mpi}"));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_THAT(result->warnings, IsEmpty());
  }
}

TEST(AzureKeys, ThePipelinesReaderDoesWhatTheTableSays) {
  ExpectAllDone("pipeline", {kPipeline, kPipelineOfComponent}, {kPipeline, kPipelineOfComponent});
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "pipeline" || row.outcome != KeyOutcome::kNoEffect) continue;
    absl::string_view key = row.key;
    const std::string text =
        absl::ConsumePrefix(&key, "jobs.*.")
            ? absl::StrCat("type: pipeline\njobs: {a: {component: ./component.yml, ", key, ": v}}")
            : absl::StrCat("type: pipeline\njobs: {a: {command: x}}\n", PlainSample(key));
    const auto result = ReadWith(text, "command: x");
    ASSERT_TRUE(result.ok()) << row.key << result.status();
    EXPECT_THAT(result->warnings, Contains(HasSubstr("has no effect"))) << row.key;
  }
}

TEST(AzureKeys, TheSweepsReaderDoesWhatTheTableSays) {
  std::vector<std::string> variants;
  for (const char* policy :
       {"bandit, slack_factor: 0.1, evaluation_interval: 2, delay_evaluation: 5",
        "bandit, slack_amount: 0.1", "truncation_selection, truncation_percentage: 20"}) {
    variants.push_back(With(kSweep, "EARLY", policy));
  }
  ExpectAllDone("sweep", variants, variants);
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "sweep" || row.outcome != KeyOutcome::kNoEffect) continue;
    const auto result = ReadWith(
        absl::StrCat("type: sweep\ntrial: {command: x}\nobjective: {goal: minimize, "
                     "primary_metric: m}\nsearch_space: {a: {type: choice, values: [1]}}\n",
                     PlainSample(row.key)),
        "");
    ASSERT_TRUE(result.ok()) << row.key << result.status();
    EXPECT_THAT(result->warnings, Contains(HasSubstr("has no effect"))) << row.key;
  }
}

TEST(AzureKeys, TheComponentsReaderDoesWhatTheTableSays) {
  std::vector<std::string> variants;
  for (const char* distribution :
       {"{type: mpi, process_count_per_instance: 1}",
        "{type: tensorflow, worker_count: 1, parameter_server_count: 1}",
        "{type: ray, port: 1, include_dashboard: true, dashboard_port: 2, "
        "head_node_additional_args: x, worker_node_additional_args: x}"}) {
    variants.push_back(With(kComponent, "DISTRIBUTION", distribution));
  }
  ExpectAllDone("component", variants, variants);
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "component" || row.outcome == KeyOutcome::kDone) continue;
    const auto result =
        ReadWith(kUsesComponent, absl::StrCat("command: x\n", PlainSample(row.key)));
    if (row.outcome == KeyOutcome::kRefused) {
      EXPECT_THAT(std::string(result.status().message()), HasSubstr(std::string(row.note)));
    } else {
      ASSERT_TRUE(result.ok()) << row.key << result.status();
      EXPECT_THAT(result->warnings, Contains(HasSubstr("has no effect"))) << row.key;
    }
  }
}

TEST(AzureKeys, TheComputeReaderDoesWhatTheTableSays) {
  const std::map<std::string, std::string> samples = {{"name", ""},
                                                      {"tags", "tags: {a: b}"},
                                                      {"type", "type: virtualmachine"},
                                                      {"max_instances", "max_instances: 2"}};
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "compute") continue;
    const auto sample = samples.find(std::string(row.key));
    const auto result = ReadComputeFile(
        absl::StrCat("name: n\n", sample == samples.end() ? PlainSample(row.key) : sample->second,
                     "\n"),
        "compute.yml");
    ASSERT_TRUE(result.ok()) << row.key << result.status();
    if (row.outcome == KeyOutcome::kDone) {
      EXPECT_THAT(result->warnings, IsEmpty()) << row.key;
    } else {
      EXPECT_THAT(result->warnings, Contains(HasSubstr("has no effect"))) << row.key;
    }
  }
}

TEST(AzureKeys, TheDataReaderDoesWhatTheTableSays) {
  const std::map<std::string, std::string> samples = {
      {"name", ""}, {"path", ""}, {"tags", "tags: {a: b}"}, {"type", "type: mltable"}};
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "data") continue;
    const auto sample = samples.find(std::string(row.key));
    const std::string text =
        absl::StrCat("name: n\npath: x\n",
                     sample == samples.end() ? absl::StrCat(row.key, ": v") : sample->second, "\n");
    const auto result = ReadAssetFile(AssetKind::kData, "data.yml", "/base", BuiltInSite(),
                                      [&](const std::filesystem::path&) { return text; });
    ASSERT_TRUE(result.ok()) << row.key << result.status();
    if (row.outcome == KeyOutcome::kDone) {
      EXPECT_THAT(result->warnings, IsEmpty()) << row.key;
    } else {
      EXPECT_THAT(result->warnings, Contains(HasSubstr("has no effect"))) << row.key;
    }
  }
}

TEST(AzureKeys, TheModelReaderDoesWhatTheTableSays) {
  const std::map<std::string, std::string> samples = {{"name", ""},
                                                      {"path", ""},
                                                      {"tags", "tags: {a: b}"},
                                                      {"properties", "properties: {a: b}"},
                                                      {"type", "type: mlflow_model"}};
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "model") continue;
    const auto sample = samples.find(std::string(row.key));
    const auto result = ReadModelText(
        absl::StrCat("name: n\npath: x\n",
                     sample == samples.end() ? absl::StrCat(row.key, ": v") : sample->second, "\n"),
        "model.yml", "/base");
    ASSERT_TRUE(result.ok()) << row.key << result.status();
    if (row.outcome == KeyOutcome::kDone) {
      EXPECT_THAT(result->warnings, IsEmpty()) << row.key;
    } else {
      EXPECT_THAT(result->warnings, Contains(HasSubstr("has no effect"))) << row.key;
    }
  }
}

TEST(AzureKeys, TheDatastoreReaderDoesWhatTheTableSays) {
  const std::string principal = "{tenant_id: t, client_id: c, client_secret: s, ";
  const std::map<std::string, std::string> samples = {
      {"tags", "tags: {a: b}"},
      {"protocol", "protocol: wasbs"},
      {"credentials", "credentials: {account_key: a2V5}"},
      {"credentials.account_key", "credentials: {account_key: a2V5}"},
      {"credentials.authority_url", "credentials: " + principal + "authority_url: https://a.b}"},
      {"credentials.sas_token", "credentials: {sas_token: sv=1}"}};
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != "datastore") continue;
    const std::string key(row.key);
    std::string text = "name: n\ntype: azure_blob\naccount_name: a\ncontainer_name: c\n";
    if (key == "filesystem" || key == "file_share_name") {
      text = absl::StrReplaceAll(
          text, {{"container_name", key},
                 {"azure_blob", key == "filesystem" ? "azure_data_lake_gen2" : "azure_file"}});
    } else if (const auto sample = samples.find(key); sample != samples.end()) {
      text += sample->second;
    } else if (absl::StartsWith(key, "credentials.")) {
      const std::string own = key.substr(12);
      const bool is_part = absl::StrContains(principal, own);
      text += "credentials: " + principal + (is_part ? "}" : own + ": v}");
    } else if (!absl::StrContains(text, key + ":")) {
      text += absl::StrContains(key, '.') ? "" : key + ": v";
    }
    const auto result = ReadDatastoreFile(text, "store.yml", "/base");
    if (row.outcome == KeyOutcome::kRefused) {
      EXPECT_THAT(std::string(result.status().message()), HasSubstr(std::string(row.note)));
      continue;
    }
    ASSERT_TRUE(result.ok()) << key << result.status();
    if (row.outcome == KeyOutcome::kDone) {
      EXPECT_THAT(result->warnings, Not(Contains(HasSubstr("has no effect")))) << key;
    } else if (!absl::StartsWith(key, "artifact.")) {
      EXPECT_THAT(result->warnings, Contains(HasSubstr("has no effect"))) << key;
    }
  }
}

TEST(AzureKeys, EverySettingOfSlurmsIsNamed) {
  for (const SlurmText& text : kSlurmTexts) {
    EXPECT_THAT(std::string(FindAzureKey("command", "resources.properties")->note),
                HasSubstr(text.key));
  }
}

// The pages are printed by:  TUTTI_WRITE_PAGES=1 build/bin/tutti_spec_test
// --gtest_filter='AzureKeys*'
TEST(AzureKeys, ThePagesArePrintedFromTheTable) {
  for (const auto& [schema, text] : AzureKeysPages()) {
    const std::filesystem::path page = absl::StrCat(TUTTI_PAGES "/azure-ml-keys/", schema, ".md");
    if (std::getenv("TUTTI_WRITE_PAGES") != nullptr) {
      ASSERT_TRUE(base::WriteFileAtomic(page, text).ok());
    }
    EXPECT_EQ(base::ReadFile(page).value_or("no page"), text) << page;
  }
}

}  // namespace
}  // namespace tutti::spec
