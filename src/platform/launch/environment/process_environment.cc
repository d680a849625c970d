#include "platform/launch/environment/process_environment.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "platform/launch/environment/mlflow_stores.h"
#include "platform/launch/environment/pmi_id.h"
#include "platform/launch/environment/rank_driver.h"
#include "platform/launch/node/node_folders.h"
#include "spec/environment/contract_variables.h"
#include "spec/environment/process_path.h"

namespace tutti::launch {
namespace {

using spec::LaunchPlan;

constexpr char kSharedTemp[] = "AZ_BATCHAI_SHARED_JOB_TEMP";

bool IsHandedOn(absl::string_view name) {
  static constexpr absl::string_view kNames[] = {
      "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH",
      "VIRTUAL_ENV", "CUDA_HOME", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "NO_PROXY",
      "HTTPS_PROXY", "REQUESTS_CA_BUNDLE",
      // Where packages come from.
      "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_CERT",
      "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS"};
  static constexpr absl::string_view kPrefixes[] = {"LC_",   "CONDA_", "SSL_CERT_", "NVIDIA_",
                                                    "NCCL_", "UCX_",   "SLURM_",    "OMPI_MCA_"};
  return std::count(std::begin(kNames), std::end(kNames), name) > 0 ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](absl::string_view prefix) { return absl::StartsWith(name, prefix); });
}

std::string Addresses(const LaunchPlan& plan, const char* separator) {
  return absl::StrJoin(plan.nodes, separator, [](std::string* out, const spec::PlanNode& node) {
    absl::StrAppend(out, node.address);
  });
}

// Returns whether the variable belongs to the launcher's Python, which the job's own must not see.
bool IsOfOtherPython(absl::string_view name) {
  return name == "PYTHONPATH" || name == "VIRTUAL_ENV" || absl::StartsWith(name, "CONDA_");
}

// Returns whether the variable means something where nothing of the host is installed.
bool IsHandedOnToImage(absl::string_view name) {
  return name == "TZ" || absl::EndsWithIgnoreCase(name, "_proxy") ||
         absl::EndsWith(name, "_INDEX") || absl::StartsWith(name, "NCCL_") ||
         absl::StartsWith(name, "UCX_") || name == "PIP_INDEX_URL" ||
         name == "PIP_EXTRA_INDEX_URL" || name == "PIP_TRUSTED_HOST";
}

bool IsForThisJob(absl::string_view name, const NodeFacts& facts) {
  if (!IsHandedOn(name)) return false;
  if (!facts.image.empty()) return IsHandedOnToImage(name);
  return facts.python.empty() || !IsOfOtherPython(name);
}

// Layer 1: good values that a user, or the job's environment, may replace.
Variables Defaults(const LaunchPlan& plan, const NodeFacts& facts) {
  Variables variables;
  for (const auto& [name, value] : facts.own) {
    if (IsForThisJob(name, facts)) variables[name] = value;
  }
  variables["PYTHONUNBUFFERED"] = "1";
  variables["TMPDIR"] =
      facts.temporary.empty() ? NodeFolders(plan.directory).scratch().string() : facts.temporary;
  const int processes = std::max(1, plan.node().process_count);
  variables["OMP_NUM_THREADS"] = absl::StrCat(std::max(1, facts.cores / processes));
  // All of the node's devices in every process, since scripts choose theirs by LOCAL_RANK.
  if (!facts.gpus.empty()) variables["CUDA_VISIBLE_DEVICES"] = absl::StrJoin(facts.gpus, ",");
  // Of several nodes a job may name a folder of its own, as it must where they share none.
  if (const std::filesystem::path shared = SharedScratch(plan); !shared.empty()) {
    variables[kSharedTemp] = shared.string();
  }
  const auto set_defaults = RankDriverOf(plan).set_defaults;
  if (set_defaults != nullptr) set_defaults(plan, variables);
  return variables;
}

// Beside a name, or an id, that is the user's, MLflow would refuse our run, which may be in another
// experiment.
bool NamesItsOwnExperiment(const Variables& users) {
  return users.contains("MLFLOW_EXPERIMENT_ID") || users.contains("MLFLOW_EXPERIMENT_NAME");
}

// "10.0.0.1" of "https://10.0.0.1:6280", "::1" of "https://[::1]:6280".
std::string HostOf(absl::string_view address) {
  const size_t scheme = address.find("://");
  if (scheme != absl::string_view::npos) address.remove_prefix(scheme + 3);
  if (absl::ConsumePrefix(&address, "[")) return std::string(address.substr(0, address.find(']')));
  return std::string(address.substr(0, address.find(':')));
}

// No proxy stands before the service, where a job has one.
void LeaveOutProxy(const std::string& address, Variables& v) {
  bool has_proxy = false;
  for (const char* name : {"http_proxy", "https_proxy", "all_proxy"}) {
    has_proxy = has_proxy || v.contains(name) || v.contains(absl::AsciiStrToUpper(name));
  }
  // Clients read one of the names, or that in small letters first.
  std::string former;
  for (const char* name : {"NO_PROXY", "no_proxy"}) {
    if (v.contains(name)) former = v[name];
  }
  if (!has_proxy && former.empty()) return;
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    const std::string own = v.contains(name) ? v[name] : former;
    v[name] = own.empty() ? HostOf(address) : absl::StrCat(own, ",", HostOf(address));
  }
}

// All ranks have the job's one run, as in Azure ML.
void AddTracking(const Tracking& tracking, const Variables& users, Variables& v) {
  v["MLFLOW_TRACKING_URI"] = tracking.address;
  v["TUTTI_TRACKING"] = tracking.address;  // tutti-train's metrics file goes there by the service
  if (!tracking.certificate.empty() && !users.contains("MLFLOW_TRACKING_INSECURE_TLS")) {
    v["MLFLOW_TRACKING_SERVER_CERT_PATH"] = tracking.certificate;
  }
  if (NamesItsOwnExperiment(users)) return;
  v["MLFLOW_EXPERIMENT_NAME"] = tracking.experiment;
  if (!tracking.run.empty()) v["MLFLOW_RUN_ID"] = tracking.run;
}

// What a job logs with MLflow comes with its results, unless it names another place. The path is
// absolute, since a command may leave its folder. Each rank has a store of its own: MLflow makes
// stores, experiments and runs without a lock, and nodes' results come together under one name.
void AddMlflow(const LaunchPlan& plan, int rank, const NodeFacts& facts, const Variables& users,
               Variables& v) {
  // MLflow 3.17 writes files only if it is told that it may.
  v["MLFLOW_ALLOW_FILE_STORE"] = "true";
  if (NamesItsOwnMlflow(plan)) return;
  if (!facts.tracking.address.empty()) return AddTracking(facts.tracking, users, v);
  v["MLFLOW_TRACKING_URI"] = MlflowStoreOf(plan, rank).string();
  if (!facts.mlflow_run.empty()) v["MLFLOW_RUN_ID"] = facts.mlflow_run;
  // On a server that the user names, MLflow would make an experiment of this name; beside an
  // experiment's id, the name is an error.
  if (plan.experiment_name.empty() || users.count("MLFLOW_EXPERIMENT_ID") > 0) return;
  v["MLFLOW_EXPERIMENT_NAME"] = plan.experiment_name;
}

struct RankPlacement {
  int rank, world_size, local_rank, local_size, node, nodes;
  std::string master, port;
};

RankPlacement PlacementOf(const LaunchPlan& plan, int local_rank) {
  return {plan.node().first_rank + local_rank,
          plan.WorldSize(),
          local_rank,
          plan.node().process_count,
          plan.node_index,
          static_cast<int>(plan.nodes.size()),
          plan.nodes.front().address,
          absl::StrCat(plan.master_port)};
}

void AddTorch(const RankPlacement& at, const std::string& job, Variables& v) {
  v["MASTER_ADDR"] = v["PET_MASTER_ADDR"] = at.master;
  v["MASTER_PORT"] = v["PET_MASTER_PORT"] = at.port;
  v["RANK"] = v["ROLE_RANK"] = absl::StrCat(at.rank);
  v["WORLD_SIZE"] = v["ROLE_WORLD_SIZE"] = absl::StrCat(at.world_size);
  v["LOCAL_RANK"] = absl::StrCat(at.local_rank);
  v["LOCAL_WORLD_SIZE"] = v["PET_NPROC_PER_NODE"] = absl::StrCat(at.local_size);
  v["NODE_RANK"] = v["GROUP_RANK"] = v["PET_NODE_RANK"] = absl::StrCat(at.node);
  v["GROUP_WORLD_SIZE"] = v["PET_NNODES"] = absl::StrCat(at.nodes);
  v["PET_RDZV_ENDPOINT"] = absl::StrCat(at.master, ":", at.port);
  v["PET_RDZV_BACKEND"] = "static";
  v["PET_RDZV_ID"] = job;
}

void AddMpiAndHorovod(const RankPlacement& at, Variables& v) {
  v["OMPI_COMM_WORLD_RANK"] = v["HOROVOD_RANK"] = absl::StrCat(at.rank);
  v["OMPI_COMM_WORLD_SIZE"] = v["HOROVOD_SIZE"] = absl::StrCat(at.world_size);
  v["OMPI_COMM_WORLD_LOCAL_RANK"] = v["HOROVOD_LOCAL_RANK"] = absl::StrCat(at.local_rank);
  v["OMPI_COMM_WORLD_LOCAL_SIZE"] = v["HOROVOD_LOCAL_SIZE"] = absl::StrCat(at.local_size);
  // Open MPI's "node rank" is the rank within the node over all of a user's jobs.
  v["OMPI_COMM_WORLD_NODE_RANK"] = absl::StrCat(at.local_rank);
  v["HOROVOD_CROSS_RANK"] = absl::StrCat(at.node);
  v["HOROVOD_CROSS_SIZE"] = absl::StrCat(at.nodes);
}

// As the libraries of MPICH and Intel MPI, and programs that look for these, find which rank they
// are.
void AddPmi(const LaunchPlan& plan, const RankPlacement& at, const std::string& address,
            Variables& v) {
  v["PMI_PORT"] = address;
  v["PMI_ID"] = absl::StrCat(PmiId(plan, at.rank));
  v["PMI_RANK"] = absl::StrCat(at.rank);
  v["PMI_SIZE"] = absl::StrCat(at.world_size);
  v["MPI_LOCALRANKID"] = absl::StrCat(at.local_rank);
  v["MPI_LOCALNRANKS"] = absl::StrCat(at.local_size);
}

bool BeginsWithFormerOutputs(const LaunchPlan& plan) {
  return !plan.former_directory.empty() || !plan.resume.empty();
}

void AddAzure(const LaunchPlan& plan, const RankPlacement& at, const NodeFacts& facts,
              Variables& v) {
  const NodeFolders folders(plan.directory);
  v["AZ_BATCH_MASTER_NODE"] = absl::StrCat(at.master, ":", at.port);
  v["AZ_BATCH_HOST_LIST"] = Addresses(plan, ",");
  v["AZ_BATCH_NODE_LIST"] = Addresses(plan, ";");
  v["AZ_BATCH_IS_CURRENT_NODE_MASTER"] = at.node == 0 ? "true" : "false";
  v["AZ_BATCHAI_MOUNT_ROOT"] = v["AZ_BATCHAI_JOB_MOUNT_ROOT"] = folders.inputs().string();
  v["AZ_BATCHAI_JOB_TEMP"] = v["AZ_BATCHAI_JOB_TEMP_DIR"] = folders.scratch().string();
  if (at.nodes == 1) v[kSharedTemp] = folders.scratch().string();
  v["AZ_BATCHAI_STDOUTERR_DIR"] = folders.spool().string();
  v["AZ_BATCHAI_MPI_HOST_FILE"] = folders.host_file().string();
  v["AZ_BATCHAI_MPI_MASTER_NODE"] = at.master;
  v["AZ_BATCHAI_NODE_LIST"] = Addresses(plan, ",");
  const std::string gpus = absl::StrCat(plan.has_part() ? plan.gpus.size() : facts.gpus.size());
  v["AZ_BATCHAI_NUM_GPUS"] = v["AZ_BATCHAI_GPU_COUNT_FOUND"] = gpus;
  v["AZ_BATCHAI_TASK_INDEX"] = absl::StrCat(at.rank);
  v["AZ_BATCHAI_WORKER_HOSTS"] = Addresses(plan, ",");
  v["AZ_BATCHAI_PS_HOSTS"] = "";
  v["AZ_BATCHAI_PYTORCH_INIT_METHOD"] = absl::StrCat("tcp://", at.master, ":", at.port);
  v["AZUREML_RUN_ID"] = plan.job_id;
  v["AZUREML_ROOT_RUN_ID"] = plan.job_id.substr(0, plan.job_id.find('.'));  // "pipeline.step"
  v["AZUREML_EXPERIMENT_NAME"] = v["AZUREML_ARM_PROJECT_NAME"] = plan.experiment_name;
  v["AZUREML_ARM_WORKSPACE_NAME"] = v["AZUREML_ARM_RESOURCEGROUP"] = "tutti";
  v["AZUREML_ARM_SUBSCRIPTION"] = "00000000-0000-0000-0000-000000000000";
  v["AZUREML_CR_NODE_RANK"] = absl::StrCat(at.node);
  v["AZUREML_NODE_COUNT"] = absl::StrCat(at.nodes);
  v["AZUREML_PROCESS_NAME"] = absl::StrCat("rank_", at.rank);
  if (!facts.data_cache.empty()) v["TUTTI_DATA_CACHE"] = facts.data_cache;
  if (!facts.data_stream.empty()) v["TUTTI_DATA_STREAM"] = facts.data_stream;
  for (const auto& [name, value] : facts.inputs) {
    const auto input = plan.inputs.find(name);
    if (input != plan.inputs.end() && !input->second.table.empty()) continue;
    const std::string id = spec::AsVariableName(name);
    v["AZ_BATCHAI_INPUT_" + id] = v["AZURE_ML_INPUT_" + id] = value;
    v["AZUREML_DATAREFERENCE_" + id] = value;
  }
  for (const auto& [name, folder] : facts.outputs) {
    const std::string id = spec::AsVariableName(name);
    v["AZ_BATCHAI_OUTPUT_" + id] = v["AZURE_ML_OUTPUT_" + id] = folder;
    // What was written before lies in the output itself (former_outputs_hook.cc).
    if (BeginsWithFormerOutputs(plan)) v["AZ_BATCHAI_PREV_OUTPUT_" + id] = folder;
  }
}

void AddTutti(const LaunchPlan& plan, const RankPlacement& at, Variables& v) {
  v["TUTTI_JOB_ID"] = plan.job_id;
  v["TUTTI_ALLOCATION_ID"] = plan.allocation_id;
  v["TUTTI_NODE_NAME"] = plan.node().name;
  v["TUTTI_NODE_ADDRESS"] = plan.node().address;
  v["TUTTI_RESTART_COUNT"] = absl::StrCat(plan.attempt - 1);
  const std::string& earlier = plan.attempt > 1 ? plan.job_id : plan.resume;
  if (!earlier.empty()) v["TUTTI_RESUME_FROM"] = earlier;
  v["TUTTI_JOB_TOKEN"] = plan.job_token;
  v["TUTTI_METRICS_FILE"] = NodeFolders(plan.directory).stream(at.rank, "metrics").string();
}

// A rank of a job that has a share of its node sees the share's devices and no others. HIP reads
// its own variable; ROCR_VISIBLE_DEVICES would number the devices anew below it.
void AddPart(const LaunchPlan& plan, Variables& v) {
  if (plan.has_part()) {
    v["CUDA_VISIBLE_DEVICES"] = v["HIP_VISIBLE_DEVICES"] = absl::StrJoin(plan.gpus, ",");
  }
}

// Layer 4: who the process is and where its files are.
Variables Contract(const LaunchPlan& plan, int local_rank, const NodeFacts& facts) {
  const RankPlacement at = PlacementOf(plan, local_rank);
  Variables v;
  if (spec::HasRanks(plan.distribution, plan.WorldSize())) {
    AddTorch(at, plan.job_id, v);
    AddMpiAndHorovod(at, v);
  }
  if (!facts.pmi.empty()) AddPmi(plan, at, facts.pmi, v);
  AddAzure(plan, at, facts, v);
  const auto set_contract = RankDriverOf(plan).set_contract;
  if (set_contract != nullptr) set_contract(plan, at.rank, v);
  AddTutti(plan, at, v);
  AddPart(plan, v);
  return v;
}

}  // namespace

Variables EnvironmentOf(const LaunchPlan& plan, int local_rank, const NodeFacts& facts) {
  Variables users = plan.environment.variables;
  const spec::ExpressionValues values = ValuesOf(plan, facts.inputs, facts.outputs);
  for (const auto& [name, value] : plan.environment_variables) {
    users[name] = spec::ExpandExpressions(value, values).value_or(value);
  }
  for (const auto& [name, value] : facts.secrets) users[name] = value;
  Variables variables = Defaults(plan, facts);
  AddMlflow(plan, plan.node().first_rank + local_rank, facts, users, variables);
  for (auto& [name, value] : users) variables[name] = value;
  if (!facts.tracking.address.empty()) LeaveOutProxy(facts.tracking.address, variables);
  // An image has a PATH of its own, and the host's programs are not in it.
  if (facts.image.empty()) {
    variables["PATH"] = spec::ProcessPath(variables, facts.own, facts.program_folder, facts.python);
  }
  if (!facts.python.empty()) variables["VIRTUAL_ENV"] = facts.python;
  if (!facts.own_package.empty()) {
    std::string& path = variables["PYTHONPATH"];
    path = absl::StrCat(facts.own_package, path.empty() ? "" : ":", path);
  }
  for (auto& [name, value] : Contract(plan, local_rank, facts)) variables[name] = value;
  for (const auto& [name, value] : facts.pmix) variables[name] = value;
  return variables;
}

std::filesystem::path SharedScratch(const LaunchPlan& plan) {
  const std::filesystem::path own = plan.directory;
  if (plan.nodes.size() == 1) return NodeFolders(own).scratch();
  if (!plan.shared_folder.empty()) return NodeFolders(own.parent_path() / "0").scratch();
  if (plan.boot_id.empty()) return {};
  return NodeFolders(own.parent_path().parent_path() / plan.nodes.front().name / own.filename())
      .scratch();
}

spec::ExpressionValues ValuesOf(const LaunchPlan& plan, const Variables& inputs,
                                const Variables& outputs) {
  spec::ExpressionValues values{inputs, outputs, {}};
  for (const auto& [name, input] : plan.inputs) {
    if (input.absent) values.absent.insert(name);
    if (!input.table.empty()) values.inputs.erase(name);  // no name that a user gave
  }
  return values;
}

std::vector<std::string> OverriddenNames(const LaunchPlan& plan) {
  const Variables contract = Contract(plan, 0, {});
  Variables given = plan.environment_variables;
  given.insert(plan.environment.variables.begin(), plan.environment.variables.end());
  given.insert(plan.secret_variables.begin(), plan.secret_variables.end());
  given.insert(plan.secret_files.begin(), plan.secret_files.end());
  std::vector<std::string> names;
  for (const auto& [name, value] : given) {
    if (contract.count(name) > 0) names.push_back(name);
  }
  return names;
}

std::string HostFile(const LaunchPlan& plan) {
  std::string text;
  for (const spec::PlanNode& node : plan.nodes) {
    for (int i = 0; i < node.process_count; ++i) absl::StrAppend(&text, node.address, "\n");
  }
  return text;
}

}  // namespace tutti::launch
