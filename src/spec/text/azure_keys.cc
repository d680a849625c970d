#include "spec/text/azure_keys.h"

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
constexpr absl::string_view kNoRayAddress =
    "a ray job has a cluster of its own, on its own nodes: without a distribution, a command "
    "reaches one that is elsewhere by environment_variables: {RAY_ADDRESS: ADDRESS}";

constexpr absl::string_view kShm =
    "of a job whose environment is an image: its processes have the node's /dev/shm, which must be "
    "as large; of another job no effect, warned";
constexpr absl::string_view kDockerArguments =
    "of a job whose environment is an image: --add-host, --cap-drop, --env, --shm-size, --tmpfs, "
    "--ulimit; if the site allows it (containers: of site.yml) also --cap-add, --device, "
    "--group-add, --mount, --privileged, --security-opt, --volume; others, and of another job all, "
    "have no effect, warned";

constexpr absl::string_view kProperties =
    "`slurm: {partition, account, qos, constraint, gres, reservation, time, memory, cpus_per_node, "
    "exclusive, options}`: over what site.yml says of a compute of type slurm; `tutti: {cpus, "
    "memory, gpus}`: a share of each node in place of all of it; `tutti: {secrets}`: what its "
    "processes are given of the service's secrets; `tutti: {logs}`: the folder of a store to which "
    "its logs go; `tutti: {mount}`: inputs that its nodes mount; other properties have no effect, "
    "warned";

constexpr KeyGroup kGroups[] = {
    {"command", "$schema", kDone,
     "the command job's; with another job's and a `type`, the type counts, warned"},
    {"command", "type", kDone, "command, the default"},
    {"command", "name", kDone, "the job's id; without it the service gives one"},
    {"command", "display_name description tags", kDone, "kept and shown"},
    {"command", "experiment_name", kDone, "without it: the name of the job file's folder"},
    {"command", "properties", kNoEffect, "no one reads them here"},
    {"command", "parent_job_name", kNoEffect, "a job that is submitted alone stands alone"},
    {"command", "creation_context id status log_files", kNoEffect, kWrittenByService},
    {"command", "command", kDone, "run by `bash -c` once for each process"},
    {"command", "code", kDone,
     "a folder (without what .amlignore or .gitignore names), a file, a git address: "
     "git+https://HOST/REPOSITORY.git@REVISION#subdirectory=FOLDER, or an address in a store: "
     "azureml://datastores/NAME/paths/PATH"},
    {"command", "environment", kDone,
     "a name, `file:` and a path, or written out (below): a Python environment or an image, made "
     "once; the table of site.yml says what names and images mean"},
    {"command", "environment_variables", kDone, "with ${{inputs.x}} and ${{outputs.x}}"},
    {"command", "compute", kDone,
     "local, or a name that site.yml or a compute's file maps to it; none and `serverless` are "
     "local too"},
    {"command", "inputs inputs.*", kDone, "a plain value, or a mapping of the keys below"},
    {"command", "inputs.*.type", kDone,
     "uri_folder, uri_file, mltable, mlflow_model, custom_model, triton_model; string, number, "
     "integer, boolean"},
    {"command", "inputs.*.path", kDone,
     "a local path, an earlier job's output (azureml://jobs/JOB/outputs/NAME/paths/PATH), an "
     "address or pattern that `tutti data map` serves from a local copy, a file, folder or pattern "
     "in a datastore (azureml://datastores/NAME/paths/PATH) or by wasbs, abfss, s3 or gs, or of a "
     "uri_file one by https: it is fetched once to each node"},
    {"command", "inputs.*.mode", kDone,
     "ro_mount, download, direct (an address that is not mapped is then handed on as it is). "
     "ro_mount is the local path itself, which the job's processes see read-only where the machine "
     "lets their user have that (docs/data/read-only-inputs.md); download is a copy of the job's "
     "own, direct the path as it is. eval_mount and eval_download, of an mltable, give the files "
     "that the table's paths name (docs/data/tables.md); no transformation is evaluated"},
    {"command", "inputs.*.default inputs.*.value", kDone, "of an input that has no path"},
    {"command", "inputs.*.optional", kDone,
     "without a value, what stands in $[[…]] around the input is left out of the command"},
    {"command", "inputs.*.min inputs.*.max", kDone, "the value is checked by them"},
    {"command", "inputs.*.enum", kDone,
     "a value that is not in it is warned of, as Azure ML takes it"},
    {"command", "inputs.*.description", kDone, kForReaders},
    {"command", "inputs.*.datastore", kNoEffect, "inputs are read where they lie"},
    {"command", "outputs outputs.*", kDone, "kept with the job; `NAME:` alone is a folder"},
    {"command", "outputs.*.type", kDone,
     "uri_folder, uri_file, mltable, mlflow_model, custom_model, triton_model"},
    {"command", "outputs.*.mode", kDone,
     "rw_mount, mount: the folder begins with what its place has; upload, direct: it begins empty"},
    {"command", "outputs.*.path", kDone,
     "a place in a datastore (azureml://datastores/NAME/paths/PATH) or by wasbs, abfss, s3 or "
     "file, to which it is brought; with anything else, which is warned of, the output is kept "
     "with the job alone (of a uri_file the last part of the path is the file's name)"},
    {"command", "outputs.*.name outputs.*.version", kNoEffect,
     "outputs are not made data by themselves: `tutti data create` names them"},
    {"command", "outputs.*.description", kDone, kForReaders},
    {"command", "distribution distribution.type", kDone,
     "mpi, pytorch, tensorflow, ray; horovod is as mpi"},
    {"command", "distribution.process_count_per_instance", kDone, "mpi and pytorch; 1 without it"},
    {"command", "distribution.worker_count", kDone, "tensorflow; without it one for each node"},
    {"command", "distribution.parameter_server_count", kDone, "tensorflow"},
    {"command", "distribution.port", kDone,
     "ray: where its head listens; without it, and where it is taken on the machine of virtual "
     "nodes, one that is free"},
    {"command", "distribution.include_dashboard distribution.dashboard_port", kDone,
     "ray: where the environment has ray[default]; elsewhere the job runs without a dashboard"},
    {"command", "distribution.head_node_additional_args distribution.worker_node_additional_args",
     kDone, "ray: put behind tutti's own options of `ray start`, so they come before those"},
    {"command", "distribution.address", kRefused, kNoRayAddress},
    {"command", "resources resources.instance_count", kDone,
     "nodes; 1 without it; in resources, distribution and limits ${{inputs.x}} may stand"},
    {"command", "resources.instance_type", kNoEffect, "the nodes are those of the compute"},
    {"command", "resources.locations resources.max_instance_count", kNoEffect,
     "there is one place, and its nodes are given"},
    {"command", "resources.shm_size", kDone, kShm},
    {"command", "resources.docker_args", kDone, kDockerArguments},
    {"command", "resources.properties", kDone, kProperties},
    {"command", "limits limits.timeout", kDone, "seconds of wall time"},
    {"command", "queue_settings queue_settings.priority", kDone, "low, medium, high"},
    {"command", "queue_settings.job_tier", kNoEffect, "there is one tier of nodes here"},
    {"command", "retry_settings retry_settings.max_retries", kDone,
     "tutti's own: how often the job is begun again after a node of it was lost; 0 without it"},
    {"command", "resume", kDone,
     "tutti's own: an earlier job, with whose outputs this one begins, and from whose last "
     "checkpoint tutti-train goes on"},
    {"command", "services", kNoEffect, "ports of a job are not published here"},
    {"command",
     "services.*.type services.*.job_service_type services.*.port services.*.nodes "
     "services.*.properties services.*.log_dir services.*.ssh_public_keys services.*.endpoint "
     "services.*.status services.*.error_message",
     kNoEffect, "as services"},
    {"command", "identity", kNoEffect, "jobs run as the user of the service"},
    {"command", "identity.type identity.client_id identity.object_id identity.msi_resource_id",
     kNoEffect, "as identity"},

    {"environment", "$schema", kDone, "also of a file for `tutti environment create --file`"},
    {"environment", "name", kDone,
     "how messages call it; of one that was created, jobs take it by azureml:NAME"},
    {"environment", "version", kDone,
     "of one that was created: azureml:NAME:VERSION; without it the next whole number"},
    {"environment", "description tags", kDone, kForReaders},
    {"environment", "image", kDone,
     "looked up in the table of images: a plain Python, the packages that the image holds, a "
     "refusal, or a container; an image that the table does not have is pulled by podman, with the "
     "login of the secret registry.HOST if there is one, and the job runs in containers of it"},
    {"environment", "conda_file", kDone,
     "a file or a mapping; channels' packages are taken from PyPI by a table, programs among them "
     "must be on the machine, `variables` are set in the job's processes, below its "
     "environment_variables. A .txt is read as "
     "pip's requirements, a .toml as pyproject's dependencies. Of an image that is run: installed "
     "on top of it, for its own Python"},
    {"environment", "build build.path build.dockerfile_path", kDone,
     "where the table says which packages stand for the image after FROM and no packages of the "
     "system are installed, `pip install`, COPY and ENV of the Dockerfile are followed (ENV's "
     "variables are set in the job's processes, below its environment_variables) and the rest is "
     "named in a warning; else podman builds it"},
    {"environment", "os_type", kDone, "linux"},
    {"environment", "as_of_pins", kDone,
     "tutti's own: with false, packages that are not pinned are the newest; without it, where all "
     "pins (==) are of more than a year ago, those of the newest pin's day"},
    {"environment",
     "inference_config inference_config.liveness_route inference_config.liveness_route.port "
     "inference_config.liveness_route.path inference_config.readiness_route "
     "inference_config.readiness_route.port inference_config.readiness_route.path "
     "inference_config.scoring_route inference_config.scoring_route.port "
     "inference_config.scoring_route.path",
     kNoEffect, "it is for serving models"},
    {"environment", "properties datastore", kNoEffect, "no one reads them here"},
    {"environment", "id creation_context latest_version", kNoEffect, kWrittenByService},

    {"pipeline", "$schema type", kDone, "pipeline"},
    {"pipeline", "name", kDone, "the job's id; its steps' are NAME.STEP"},
    {"pipeline", "display_name description tags", kDone, "kept and shown"},
    {"pipeline", "experiment_name", kDone, "its steps' as well"},
    {"pipeline", "properties", kNoEffect, "no one reads them here"},
    {"pipeline", "compute settings.default_compute", kDone, "of steps that name none"},
    {"pipeline", "identity", kNoEffect, "jobs run as the user of the service"},
    {"pipeline", "services", kNoEffect, "ports of a job are not published here"},
    {"pipeline", "creation_context id status log_files", kNoEffect, kWrittenByService},
    {"pipeline", "resume", kRefused,
     "a pipeline begins anew, and takes finished steps' results by itself; one of its steps may "
     "have the key"},
    {"pipeline", "settings", kDone, "the keys below"},
    {"pipeline", "settings.default_datastore", kNoEffect, "outputs are kept with their jobs"},
    {"pipeline", "settings.continue_on_step_failure", kDone,
     "what does not need the failed step goes on; without it the other steps are stopped"},
    {"pipeline", "settings.force_rerun", kDone, "no step's results are taken from an earlier job"},
    {"pipeline", "settings.on_init", kDone, "the step that runs before all others"},
    {"pipeline", "settings.on_finalize", kDone,
     "the step that runs when nothing else will, also after a failure"},
    {"pipeline", "inputs inputs.*.type inputs.*.path inputs.*.mode", kDone,
     "as a command job's; steps take them by ${{parent.inputs.NAME}}"},
    {"pipeline", "outputs outputs.*.type outputs.*.mode", kDone,
     "what a step writes that is bound to them by ${{parent.outputs.NAME}}; kept with the "
     "pipeline's "
     "own results"},
    {"pipeline", "outputs.*.path", kDone,
     "as a command job's, of the step that is bound to the output"},
    {"pipeline", "jobs", kDone, "its steps, by name"},
    {"pipeline", "component", kDone,
     "in place of jobs: a pipeline component, whose steps run with the job's inputs, outputs and "
     "settings"},
    {"pipeline", "jobs.*.type", kDone,
     "command, sweep, pipeline; parallel, spark, automl and the flow controls are refused"},
    {"pipeline", "jobs.*.component", kDone,
     "a path (./train.yml), or a name that `tutti component create` or site.yml has given one: "
     "azureml:NAME:VERSION, azureml:NAME@latest, a registry's address; or written out in place"},
    {"pipeline", "jobs.*.inputs", kDone,
     "values as a command job's, ${{parent.inputs.NAME}}, or ${{parent.jobs.STEP.outputs.NAME}}"},
    {"pipeline", "jobs.*.outputs", kDone, "as a command job's, or ${{parent.outputs.NAME}}"},
    {"pipeline", "jobs.*.display_name jobs.*.description jobs.*.tags", kDone, "kept and shown"},
    {"pipeline", "jobs.*.name jobs.*.experiment_name", kDone,
     "a step has its key's name, and the pipeline's experiment"},
    {"pipeline", "jobs.*.compute", kDone, "as a command job's, or ${{parent.inputs.NAME}}"},
    {"pipeline", "jobs.*.command jobs.*.code", kDone,
     "as a command job's; a step with a component has the component's, and none of its own"},
    {"pipeline",
     "jobs.*.environment jobs.*.environment_variables jobs.*.distribution jobs.*.resources "
     "jobs.*.limits jobs.*.queue_settings",
     kDone, "as a command job's; of a component's they replace its own"},
    {"pipeline", "jobs.*.services jobs.*.identity jobs.*.properties", kNoEffect,
     "as a command job's"},
    {"pipeline",
     "jobs.*.trial jobs.*.search_space jobs.*.sampling_algorithm jobs.*.objective "
     "jobs.*.early_termination",
     kDone, "of a step of type sweep: as a sweep's"},

    {"sweep", "$schema type", kDone, "sweep"},
    {"sweep", "name", kDone, "the job's id; its trials' are NAME.trial-N"},
    {"sweep", "display_name description tags", kDone, "kept and shown"},
    {"sweep", "experiment_name", kDone, "its trials' as well"},
    {"sweep", "properties", kNoEffect, "no one reads them here"},
    {"sweep", "compute", kDone, "of its trials"},
    {"sweep", "identity", kNoEffect, "jobs run as the user of the service"},
    {"sweep", "services", kNoEffect, "ports of a job are not published here"},
    {"sweep", "creation_context id status log_files", kNoEffect, kWrittenByService},
    {"sweep", "resume", kRefused,
     "a sweep begins anew; a job resumes from one of its trials: `tutti run FILE --resume TRIAL`"},
    {"sweep", "inputs inputs.*.type inputs.*.path inputs.*.mode", kDone,
     "of each trial; as a command job's"},
    {"sweep", "outputs outputs.*.type outputs.*.mode", kDone,
     "of each trial; the best trial's are the sweep's"},
    {"sweep", "outputs.*.path", kDone,
     "as a command job's; with ${{name}}, which is the trial's name, in it"},
    {"sweep", "trial", kDone,
     "what each trial runs: the keys below, or a component: its file or name, or written out in "
     "place with inputs or outputs of its own"},
    {"sweep",
     "trial.command trial.code trial.environment trial.environment_variables trial.distribution "
     "trial.resources trial.queue_settings",
     kDone, "as a command job's; ${{search_space.NAME}} is the trial's value"},
    {"sweep", "sampling_algorithm sampling_algorithm.type", kDone,
     "random, grid (of choices), bayesian (a tree of Parzen estimators), sobol"},
    {"sweep", "sampling_algorithm.seed", kDone, "without it the job's name is the seed"},
    {"sweep", "sampling_algorithm.rule", kDone, "random or sobol"},
    {"sweep", "sampling_algorithm.logbase", kDone, "of the log distributions; e without it"},
    {"sweep", "search_space search_space.*.type", kDone,
     "choice, randint, uniform, quniform, loguniform, qloguniform, normal, qnormal, lognormal, "
     "qlognormal"},
    {"sweep",
     "search_space.*.values search_space.*.upper search_space.*.min_value "
     "search_space.*.max_value search_space.*.q search_space.*.mu search_space.*.sigma",
     kDone, "of the distributions that have them"},
    {"sweep", "objective objective.goal objective.primary_metric", kDone,
     "the best value that a trial has reported counts"},
    {"sweep", "early_termination early_termination.type", kDone,
     "bandit, median_stopping, truncation_selection"},
    {"sweep",
     "early_termination.evaluation_interval early_termination.delay_evaluation "
     "early_termination.slack_factor early_termination.slack_amount "
     "early_termination.truncation_percentage",
     kDone, "intervals are reports of the metric"},
    {"sweep",
     "limits limits.max_total_trials limits.max_concurrent_trials limits.timeout "
     "limits.trial_timeout",
     kDone, "times in seconds"},
    {"sweep", "queue_settings queue_settings.priority", kDone, "of its trials"},
    {"sweep", "queue_settings.job_tier", kNoEffect, "there is one tier of nodes here"},
    {"sweep", "resources resources.instance_count", kDone, "nodes of each trial"},
    {"sweep", "resources.instance_type", kNoEffect, "the nodes are those of the compute"},
    {"sweep", "resources.shm_size", kDone, kShm},
    {"sweep", "resources.docker_args", kDone, kDockerArguments},
    {"sweep", "resources.properties", kDone, kProperties},

    {"component", "$schema type", kDone, "command or pipeline"},
    {"component", "name version", kDone,
     "steps take it by path or, once it was created by `tutti component create --file`, by "
     "azureml:NAME:VERSION; site.yml may give names, too"},
    {"component", "display_name", kDone, kForReaders},
    {"component", "description tags", kDone, "kept and shown"},
    {"component", "is_deterministic", kDone, "false: no step takes an earlier one's results"},
    {"component", "properties", kNoEffect, "no one reads them here"},
    {"component", "id creation_context latest_version", kNoEffect, kWrittenByService},
    {"component",
     "inputs inputs.*.type inputs.*.description inputs.*.optional inputs.*.default inputs.*.mode "
     "inputs.*.min inputs.*.max inputs.*.enum",
     kDone, "as a command job's; a step gives the values"},
    {"component", "outputs outputs.*.type outputs.*.description outputs.*.mode", kDone,
     "as a command job's"},
    {"component", "outputs.*.early_available", kNoEffect,
     "steps start when those that they need have ended"},
    {"component", "outputs.*.is_control", kRefused, "it is for flow controls, which are not run"},
    {"component",
     "command code environment resources resources.instance_count distribution distribution.type "
     "distribution.process_count_per_instance distribution.worker_count "
     "distribution.parameter_server_count distribution.port distribution.include_dashboard "
     "distribution.dashboard_port distribution.head_node_additional_args "
     "distribution.worker_node_additional_args",
     kDone, "as a command job's; paths count from the component's folder"},
    {"component", "additional_includes", kDone,
     "files and folders that are put beside the code, each under its own name; paths count from "
     "the component's folder, and two of one name are refused"},
    {"component", "resources.properties", kDone, kProperties},
    {"component", "environment_variables", kDone, "as a command job's"},
    {"component", "jobs", kDone, "of a pipeline component: as a pipeline's"},
    {"data", "$schema", kDone, "of a file for `tutti data create --file`"},
    {"data", "name", kDone, "jobs take it by azureml:NAME"},
    {"data", "version", kDone, "azureml:NAME:VERSION; without it the next whole number"},
    {"data", "description tags", kDone, "kept and shown"},
    {"data", "type", kDone, "uri_folder, uri_file, mltable"},
    {"data", "path", kDone,
     "a local path, which stays where it is, or an address as a job's input may have it"},
    {"data", "properties datastore", kNoEffect, "no one reads them here"},
    {"data", "auto_delete_setting", kNoEffect, "data are not deleted by themselves"},
    {"data", "id creation_context", kNoEffect, kWrittenByService},
    {"model", "$schema", kDone, "of a file for `tutti model create --file`"},
    {"model", "name", kDone, "jobs take it by azureml:NAME:VERSION or azureml:NAME@LABEL"},
    {"model", "version", kDone, "without it the next whole number"},
    {"model", "description tags properties stage", kDone, "kept and shown"},
    {"model", "type", kDone, "custom_model, mlflow_model, triton_model"},
    {"model", "path", kDone,
     "a local file or folder, which is sent to the service, or what a job has left: "
     "azureml://jobs/JOB/outputs/NAME/paths/PATH or runs:/JOB/PATH"},
    {"model", "flavors", kNoEffect, "a folder of MLflow's says them itself, in its file MLmodel"},
    {"model", "datastore", kNoEffect, "the service keeps the files"},
    {"model", "auto_delete_setting", kNoEffect, "models are not deleted by themselves"},
    {"model", "intellectual_property", kNoEffect, "it is of Azure ML's registries"},
    {"model", "id creation_context utc_time_created job_name latest_version", kNoEffect,
     kWrittenByService},
    {"datastore", "$schema", kDone, "of a file for `tutti datastore create --file`"},
    {"datastore", "name", kDone, "jobs take it by azureml://datastores/NAME/paths/PATH"},
    {"datastore", "type", kDone,
     "azure_blob, azure_data_lake_gen2, azure_file, and of tutti's own: s3, gcs, local, nfs (both "
     "a folder that is on every node); azure_data_lake_gen1 and one_lake are refused"},
    {"datastore", "description tags", kDone, "kept and shown"},
    {"datastore", "account_name container_name filesystem file_share_name", kDone,
     "the account and what of it: a blob container, Data Lake's file system, a share"},
    {"datastore", "endpoint", kDone,
     "the cloud's domain (core.windows.net), or the URL of a server that speaks as the store does: "
     "http://127.0.0.1:10000/devstoreaccount1"},
    {"datastore", "protocol", kDone, "https, wasbs, abfss: the store is spoken to by https"},
    {"datastore", "credentials credentials.account_key credentials.sas_token", kDone,
     "become a secret of the service and are not kept elsewhere; without them only public data can "
     "be read"},
    {"datastore", "credentials.tenant_id credentials.client_id credentials.client_secret", kDone,
     "a service principal's; likewise a secret"},
    {"datastore", "credentials.authority_url", kDone,
     "who gives the service principal tokens, by https, with or without a path; Azure's public "
     "cloud if it is not said"},
    {"datastore", "credentials.resource_url", kNoEffect,
     "the tokens are asked for https://storage.azure.com, which all clouds have"},
    {"datastore", "credentials.certificate credentials.thumbprint", kRefused,
     "a certificate cannot be used here: give the principal's client_secret"},
    {"datastore", "properties", kNoEffect, "no one reads them here"},
    {"datastore", "store_name one_lake_workspace_name artifact artifact.name artifact.type",
     kNoEffect, "they are of types that are refused"},
    {"datastore", "id creation_context", kNoEffect, kWrittenByService},
    {"compute", "$schema", kDone, "of a file for `tutti compute create --file`"},
    {"compute", "name", kDone, "jobs take it by compute: azureml:NAME"},
    {"compute", "type", kDone,
     "amlcompute, computeinstance (one node), virtualmachine, kubernetes: each stands for nodes "
     "that "
     "are there already, this machine's or (`--as`) those of a compute of site.yml; synapsespark "
     "is "
     "refused"},
    {"compute", "description tags", kDone, "kept and shown"},
    {"compute", "max_instances", kDone, "a job that takes more nodes is refused before it queues"},
    {"compute",
     "min_instances idle_time_before_scale_down idle_time_before_shutdown "
     "idle_time_before_shutdown_minutes schedules",
     kNoEffect, "nodes are not bought and given back"},
    {"compute", "size tier location resource_id os_image_metadata namespace", kNoEffect,
     "the nodes are those that the name stands for"},
    {"compute",
     "ssh_public_access_enabled ssh_settings ssh_settings.admin_username "
     "ssh_settings.admin_password ssh_settings.ssh_key_value ssh_settings.ssh_private_key_file "
     "network_settings network_settings.vnet_name network_settings.subnet "
     "network_settings.public_ip_address network_settings.private_ip_address "
     "enable_node_public_ip",
     kNoEffect, "machines and networks are not set up here; nothing of it is kept"},
    {"compute",
     "identity identity.type identity.user_assigned_identities identity.principal_id "
     "create_on_behalf_of create_on_behalf_of.user_tenant_id create_on_behalf_of.user_object_id",
     kNoEffect, "jobs run as the user of the service"},
    {"compute", "custom_applications setup_scripts", kNoEffect,
     "what jobs need is said by their environment"},
    {"compute",
     "id created_on provisioning_state provisioning_errors state last_operation services",
     kNoEffect, kWrittenByService},
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

std::map<std::string, std::string> AzureKeysPages() {
  std::map<std::string, std::string> pages;
  for (const AzureKey& row : AzureKeys()) {
    std::string& page = pages[std::string(row.schema)];
    if (page.empty()) {
      absl::StrAppend(
          &page, "# Azure ML's keys: ", row.schema,
          "\n\nWhat tutti does with each, in the words of [the keys of Azure ML's job "
          "files](../azure-ml-keys/README.md). Printed from `src/spec/text/azure_keys.cc`.\n\n"
          "| key | outcome | |\n| --- | --- | --- |\n");
    }
    absl::StrAppend(&page, "| `", row.key, "` | ", OutcomeName(row.outcome), " | ", row.note,
                    " |\n");
  }
  return pages;
}

}  // namespace tutti::spec
