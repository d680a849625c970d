#include "spec/azure_keys.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

constexpr KeyOutcome kDone = KeyOutcome::kDone;
constexpr KeyOutcome kNoEffect = KeyOutcome::kNoEffect;
constexpr KeyOutcome kRefused = KeyOutcome::kRefused;

// Keys of one schema that share an outcome and a note.
struct KeyGroup {
  absl::string_view schema;
  absl::string_view keys;  // with blanks between
  KeyOutcome outcome;
  absl::string_view note;
};

constexpr absl::string_view kWrittenByService = "Azure ML's service writes it, users do not";
constexpr absl::string_view kForReaders = "it is for readers of the file";
constexpr absl::string_view kNoPipelines =
    "pipelines are not run by this version: run the steps as command jobs";
constexpr absl::string_view kNoSweeps =
    "sweeps are not run by this version: run the trial as a command job for each value";
constexpr absl::string_view kNoComponents =
    "components are steps of pipelines, which this version does not run";
constexpr absl::string_view kNoDataAssets =
    "there are no data assets: map the name to a folder with `tutti data map azureml:NAME FOLDER`";
constexpr absl::string_view kNoComputes =
    "computes are not made from files: `tutti serve --nodes N` makes this machine N nodes, and "
    "site.yml says which computes' names mean it";
constexpr absl::string_view kNoRay = "jobs of type ray are not run by this version";

constexpr KeyGroup kGroups[] = {
    {"command", "$schema", kDone, "must be the command job's, where it is given"},
    {"command", "type", kDone, "command, the default"},
    {"command", "name", kDone, "the job's id; without it the service gives one"},
    {"command", "display_name description tags", kDone, "kept and shown"},
    {"command", "experiment_name", kDone, "without it: the name of the job file's folder"},
    {"command", "properties", kNoEffect, "no one reads them here"},
    {"command", "parent_job_name", kNoEffect, "a job that is submitted alone stands alone"},
    {"command", "creation_context id status log_files", kNoEffect, kWrittenByService},
    {"command", "command", kDone, "run by `bash -c` once for each process"},
    {"command", "code", kDone,
     "a folder (without what .amlignore or .gitignore names), a file, or a git address: "
     "git+https://HOST/REPOSITORY.git@REVISION#subdirectory=FOLDER"},
    {"command", "environment", kDone,
     "a name, `file:` and a path, or written out (below): a Python environment, made once; the "
     "table of site.yml says what names and images mean"},
    {"command", "environment_variables", kDone, "with ${{inputs.x}} and ${{outputs.x}}"},
    {"command", "compute", kDone,
     "local, or a name that site.yml maps to it; none and `serverless` are local too"},
    {"command", "inputs inputs.*", kDone, "a plain value, or a mapping of the keys below"},
    {"command", "inputs.*.type", kDone,
     "uri_folder, uri_file, mltable, mlflow_model, custom_model, triton_model; string, number, "
     "integer, boolean"},
    {"command", "inputs.*.path", kDone,
     "a local path, an earlier job's output (azureml://jobs/JOB/outputs/NAME/paths/PATH), or an "
     "address that `tutti data map` serves from a local copy"},
    {"command", "inputs.*.mode", kDone,
     "ro_mount, download, direct (an address that is not mapped is then handed on as it is); "
     "eval_mount and eval_download are refused: nothing here evaluates an MLTable"},
    {"command", "inputs.*.default inputs.*.value", kDone, "of an input that has no path"},
    {"command", "inputs.*.optional", kDone,
     "without a value, what stands in $[[…]] around the input is left out of the command"},
    {"command", "inputs.*.min inputs.*.max inputs.*.enum", kDone, "the value is checked by them"},
    {"command", "inputs.*.description", kDone, kForReaders},
    {"command", "inputs.*.datastore", kNoEffect, "inputs are read where they lie"},
    {"command", "outputs outputs.*", kDone, "kept with the job; `NAME:` alone is a folder"},
    {"command", "outputs.*.type", kDone,
     "uri_folder, uri_file, mltable, mlflow_model, custom_model, triton_model"},
    {"command", "outputs.*.mode", kDone, "rw_mount, mount, upload, direct: all are alike here"},
    {"command", "outputs.*.path", kNoEffect,
     "outputs are kept with the job; `tutti job download` fetches them (of a uri_file the last "
     "part of the path is the file's name)"},
    {"command", "outputs.*.name outputs.*.version", kNoEffect,
     "outputs are not registered as data assets"},
    {"command", "outputs.*.description", kDone, kForReaders},
    {"command", "distribution distribution.type", kDone, "mpi, pytorch, tensorflow"},
    {"command", "distribution.process_count_per_instance", kDone, "mpi and pytorch; 1 without it"},
    {"command", "distribution.worker_count", kDone, "tensorflow; without it one for each node"},
    {"command", "distribution.parameter_server_count", kDone, "tensorflow"},
    {"command",
     "distribution.port distribution.address distribution.include_dashboard "
     "distribution.dashboard_port distribution.head_node_additional_args "
     "distribution.worker_node_additional_args",
     kRefused, kNoRay},
    {"command", "resources resources.instance_count", kDone, "nodes; 1 without it"},
    {"command", "resources.instance_type", kNoEffect, "the nodes are those of the compute"},
    {"command", "resources.locations resources.max_instance_count", kNoEffect,
     "there is one place, and its nodes are given"},
    {"command", "resources.shm_size", kNoEffect, "jobs share the host's /dev/shm"},
    {"command", "resources.docker_args", kNoEffect, "jobs do not run in containers here"},
    {"command", "resources.properties", kNoEffect, "no one reads them here"},
    {"command", "limits limits.timeout", kDone, "seconds of wall time"},
    {"command", "queue_settings queue_settings.priority", kDone, "low, medium, high"},
    {"command", "queue_settings.job_tier", kNoEffect, "there is one tier of nodes here"},
    {"command", "services", kNoEffect, "ports of a job are not published here"},
    {"command",
     "services.*.type services.*.job_service_type services.*.port services.*.nodes "
     "services.*.properties services.*.log_dir services.*.ssh_public_keys services.*.endpoint "
     "services.*.status services.*.error_message",
     kNoEffect, "as services"},
    {"command", "identity", kNoEffect, "jobs run as the user of the service"},
    {"command", "identity.type identity.client_id identity.object_id identity.msi_resource_id",
     kNoEffect, "as identity"},

    {"environment", "$schema", kDone, ""},
    {"environment", "name", kDone, "how messages call it"},
    {"environment", "version description tags", kDone, kForReaders},
    {"environment", "image", kDone,
     "looked up in the table of images: a plain Python, the packages that the image holds, or a "
     "refusal; images are not pulled"},
    {"environment", "conda_file", kDone,
     "a file or a mapping; channels' packages are taken from PyPI by a table. A .txt is read as "
     "pip's requirements, a .toml as pyproject's dependencies"},
    {"environment", "build build.path build.dockerfile_path", kDone,
     "FROM, `pip install`, COPY and ENV of the Dockerfile are followed; what else it does is "
     "named in a warning"},
    {"environment", "os_type", kDone, "linux"},
    {"environment",
     "inference_config inference_config.liveness_route inference_config.liveness_route.port "
     "inference_config.liveness_route.path inference_config.readiness_route "
     "inference_config.readiness_route.port inference_config.readiness_route.path "
     "inference_config.scoring_route inference_config.scoring_route.port "
     "inference_config.scoring_route.path",
     kNoEffect, "it is for serving models"},
    {"environment", "properties datastore", kNoEffect, "no one reads them here"},
    {"environment", "id creation_context latest_version", kNoEffect, kWrittenByService},

    {"pipeline",
     "$schema type name display_name experiment_name description tags properties compute identity "
     "services creation_context id status log_files settings settings.default_datastore "
     "settings.default_compute settings.continue_on_step_failure settings.force_rerun "
     "settings.on_init settings.on_finalize inputs inputs.*.type inputs.*.path inputs.*.mode "
     "outputs outputs.*.type outputs.*.path outputs.*.mode jobs jobs.*.type jobs.*.component "
     "jobs.*.inputs jobs.*.outputs jobs.*.compute jobs.*.command jobs.*.code jobs.*.environment "
     "jobs.*.environment_variables jobs.*.distribution jobs.*.resources jobs.*.limits "
     "jobs.*.queue_settings jobs.*.services jobs.*.identity jobs.*.properties jobs.*.trial "
     "jobs.*.search_space jobs.*.sampling_algorithm jobs.*.objective jobs.*.early_termination",
     kRefused, kNoPipelines},
    {"sweep",
     "$schema type name display_name experiment_name description tags properties compute identity "
     "services creation_context id status log_files inputs inputs.*.type inputs.*.path "
     "inputs.*.mode outputs outputs.*.type outputs.*.path outputs.*.mode trial trial.command "
     "trial.code trial.environment trial.environment_variables trial.distribution "
     "trial.resources trial.queue_settings sampling_algorithm sampling_algorithm.type "
     "sampling_algorithm.seed sampling_algorithm.rule sampling_algorithm.logbase search_space "
     "search_space.*.type search_space.*.values search_space.*.upper search_space.*.min_value "
     "search_space.*.max_value search_space.*.q search_space.*.mu search_space.*.sigma objective "
     "objective.goal objective.primary_metric early_termination early_termination.type "
     "early_termination.evaluation_interval early_termination.delay_evaluation "
     "early_termination.slack_factor early_termination.slack_amount "
     "early_termination.truncation_percentage limits limits.max_total_trials "
     "limits.max_concurrent_trials limits.timeout limits.trial_timeout queue_settings "
     "queue_settings.job_tier queue_settings.priority resources resources.instance_count "
     "resources.instance_type resources.shm_size resources.docker_args resources.properties",
     kRefused, kNoSweeps},
    {"component",
     "$schema type name version id display_name description tags is_deterministic inputs "
     "inputs.*.type inputs.*.description inputs.*.optional inputs.*.default inputs.*.mode "
     "inputs.*.min inputs.*.max inputs.*.enum outputs outputs.*.type outputs.*.description "
     "outputs.*.mode outputs.*.is_control command code environment resources "
     "resources.instance_count resources.properties distribution distribution.type "
     "distribution.process_count_per_instance distribution.worker_count "
     "distribution.parameter_server_count jobs",
     kRefused, kNoComponents},
    {"data",
     "$schema name version id description tags properties type path auto_delete_setting datastore "
     "creation_context",
     kRefused, kNoDataAssets},
    {"compute",
     "$schema name id type location description resource_id created_on provisioning_state "
     "provisioning_errors size tier min_instances max_instances idle_time_before_scale_down "
     "ssh_public_access_enabled ssh_settings ssh_settings.admin_username "
     "ssh_settings.admin_password ssh_settings.ssh_key_value ssh_settings.ssh_private_key_file "
     "network_settings network_settings.vnet_name network_settings.subnet "
     "network_settings.public_ip_address network_settings.private_ip_address identity "
     "identity.type identity.user_assigned_identities identity.principal_id enable_node_public_ip "
     "create_on_behalf_of create_on_behalf_of.user_tenant_id create_on_behalf_of.user_object_id "
     "state last_operation services schedules idle_time_before_shutdown "
     "idle_time_before_shutdown_minutes custom_applications setup_scripts os_image_metadata "
     "namespace tags",
     kRefused, kNoComputes},
};

absl::string_view OutcomeName(KeyOutcome outcome) {
  switch (outcome) {
    case kDone:
      return "done";
    case kNoEffect:
      return "no effect, warned";
    case kRefused:
      return "refused";
  }
  return "";
}

}  // namespace

const std::vector<AzureKey>& AzureKeys() {
  static const auto* const keys = [] {
    auto* list = new std::vector<AzureKey>;
    for (const KeyGroup& group : kGroups) {
      for (const absl::string_view key : absl::StrSplit(group.keys, ' ')) {
        list->push_back({group.schema, key, group.outcome, group.note});
      }
    }
    return list;
  }();
  return *keys;
}

const AzureKey* FindAzureKey(absl::string_view schema, absl::string_view key) {
  const auto found = std::find_if(AzureKeys().begin(), AzureKeys().end(), [&](const AzureKey& row) {
    return row.schema == schema && row.key == key;
  });
  return found == AzureKeys().end() ? nullptr : &*found;
}

std::vector<absl::string_view> AzureKeysBelow(absl::string_view schema, absl::string_view prefix) {
  std::vector<absl::string_view> keys;
  for (const AzureKey& row : AzureKeys()) {
    absl::string_view key = row.key;
    if (row.schema != schema || !absl::ConsumePrefix(&key, prefix)) continue;
    if (key != "*" && !absl::StrContains(key, '.')) keys.push_back(key);
  }
  return keys;
}

std::string AzureKeysPage() {
  std::string page =
      "# The keys of Azure ML's job files\n\n"
      "What tutti does with every key of the published v2 schemas (command job, environment, "
      "pipeline job, sweep job, component, data, compute). Printed from the table in "
      "`src/spec/azure_keys.cc`, which the readers use as well; a test holds the two together.\n\n"
      "- **done**: does here what it does in Azure ML.\n"
      "- **no effect, warned**: accepted; `tutti run` says that it changes nothing, and why.\n"
      "- **refused**: an error with the file's line and the reason.\n\n"
      "Any other key is an error that names the nearest one. `*` stands for a name of yours.\n";
  absl::string_view schema;
  for (const AzureKey& row : AzureKeys()) {
    if (row.schema != schema) {
      schema = row.schema;
      absl::StrAppend(&page, "\n## ", schema, "\n\n| key | outcome | |\n| --- | --- | --- |\n");
    }
    absl::StrAppend(&page, "| `", row.key, "` | ", OutcomeName(row.outcome), " | ", row.note,
                    " |\n");
  }
  return page;
}

}  // namespace tutti::spec
