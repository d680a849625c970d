#include "spec/environment/contract_variables.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tutti::spec {
namespace {

bool HasOneNode(const JobSpec& job) { return job.instance_count == 1; }

// Slurm itself says which GPUs a share of its nodes has.
bool HasNodeShare(const JobSpec& job) { return job.share.has_value() && job.compute == "local"; }

bool HasOwnPython(const JobSpec& job) {
  return !job.environment.is_host && job.environment.image.empty();
}

bool IsStreamed(const JobSpec& job) {
  return std::any_of(job.inputs.begin(), job.inputs.end(), [](const auto& entry) {
    const Input& input = entry.second;
    return !input.absent && input.place && input.mode == "direct";
  });
}

bool MayResume(const JobSpec& job) { return !job.resume.empty() || job.max_retries > 0; }

struct Row {
  absl::string_view names;  // separated by blanks
  absl::string_view value;
  bool (*is_set)(const JobSpec& job) = nullptr;  // null: of all jobs
};

// Which process of several it is.
constexpr Row kOfRanks[] = {
    {"RANK ROLE_RANK OMPI_COMM_WORLD_RANK HOROVOD_RANK", "its rank"},
    {"WORLD_SIZE ROLE_WORLD_SIZE OMPI_COMM_WORLD_SIZE HOROVOD_SIZE",
     "the number of the job's processes"},
    {"LOCAL_RANK OMPI_COMM_WORLD_LOCAL_RANK HOROVOD_LOCAL_RANK OMPI_COMM_WORLD_NODE_RANK",
     "its rank on its node"},
    {"LOCAL_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_SIZE HOROVOD_LOCAL_SIZE PET_NPROC_PER_NODE",
     "the number of its node's processes"},
    {"NODE_RANK GROUP_RANK PET_NODE_RANK HOROVOD_CROSS_RANK", "the index of its node"},
    {"GROUP_WORLD_SIZE PET_NNODES HOROVOD_CROSS_SIZE", "the number of the job's nodes"},
    {"MASTER_ADDR PET_MASTER_ADDR", "the first node's address"},
    {"MASTER_PORT PET_MASTER_PORT", "a free port of the first node"},
    {"PET_RDZV_ENDPOINT", "the first node's address with a free port"},
    {"PET_RDZV_BACKEND", "static"},
    {"PET_RDZV_ID", "the job's name"},
};

constexpr Row kOthers[] = {
    {"AZUREML_CR_NODE_RANK", "the index of its node"},
    {"AZUREML_NODE_COUNT", "the number of the job's nodes"},
    {"AZ_BATCHAI_MPI_MASTER_NODE", "the first node's address"},
    {"AZ_BATCH_MASTER_NODE AZ_BATCHAI_PYTORCH_INIT_METHOD",
     "the first node's address with a free port"},
    {"AZUREML_RUN_ID TUTTI_JOB_ID", "the job's name"},
    {"AZUREML_ROOT_RUN_ID", "the name of the outermost job"},
    {"AZUREML_EXPERIMENT_NAME AZUREML_ARM_PROJECT_NAME", "the job's experiment_name"},
    {"AZUREML_ARM_WORKSPACE_NAME AZUREML_ARM_RESOURCEGROUP", "tutti"},
    {"AZUREML_ARM_SUBSCRIPTION", "zeros"},
    {"AZUREML_PROCESS_NAME AZ_BATCHAI_TASK_INDEX", "what follows from its rank"},
    {"AZ_BATCH_HOST_LIST AZ_BATCH_NODE_LIST AZ_BATCHAI_NODE_LIST AZ_BATCHAI_WORKER_HOSTS "
     "AZ_BATCHAI_PS_HOSTS",
     "the nodes' addresses"},
    {"AZ_BATCHAI_MPI_HOST_FILE", "a file with the nodes' addresses"},
    {"AZ_BATCH_IS_CURRENT_NODE_MASTER", "true on the first node"},
    {"AZ_BATCHAI_NUM_GPUS AZ_BATCHAI_GPU_COUNT_FOUND", "the number of its node's GPUs"},
    {"AZ_BATCHAI_MOUNT_ROOT AZ_BATCHAI_JOB_MOUNT_ROOT", "the folder of the inputs"},
    {"AZ_BATCHAI_JOB_TEMP AZ_BATCHAI_JOB_TEMP_DIR AZ_BATCHAI_STDOUTERR_DIR",
     "a folder of the job on its node"},
    {"AZ_BATCHAI_SHARED_JOB_TEMP", "a folder of the job on its node", HasOneNode},
    {"TUTTI_ALLOCATION_ID TUTTI_NODE_NAME TUTTI_NODE_ADDRESS TUTTI_RESTART_COUNT TUTTI_JOB_TOKEN "
     "TUTTI_METRICS_FILE",
     "what it knows of the job's run"},
    {"TUTTI_RESUME_FROM", "the job from which it resumes", MayResume},
    {"TUTTI_DATA_CACHE TUTTI_DATA_STREAM", "what serves the job's inputs of mode direct",
     IsStreamed},
    {"CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES", "the GPUs of the job's share of the node",
     HasNodeShare},
    {"VIRTUAL_ENV", "the Python environment that is made for the job", HasOwnPython},
};

const Row* Find(std::span<const Row> rows, const JobSpec& job, absl::string_view name) {
  for (const Row& row : rows) {
    if (row.is_set != nullptr && !row.is_set(job)) continue;
    const std::vector<absl::string_view> names = absl::StrSplit(row.names, ' ');
    if (std::find(names.begin(), names.end(), name) != names.end()) return &row;
  }
  return nullptr;
}

bool NamesInput(const JobSpec& job, absl::string_view name) {
  return (absl::ConsumePrefix(&name, "AZ_BATCHAI_INPUT_") ||
          absl::ConsumePrefix(&name, "AZURE_ML_INPUT_") ||
          absl::ConsumePrefix(&name, "AZUREML_DATAREFERENCE_")) &&
         std::any_of(job.inputs.begin(), job.inputs.end(), [&](const auto& input) {
           return !input.second.absent && AsVariableName(input.first) == name;
         });
}

bool NamesOutput(const JobSpec& job, absl::string_view name) {
  const bool goes_on = MayResume(job);
  return (absl::ConsumePrefix(&name, "AZ_BATCHAI_OUTPUT_") ||
          (goes_on && absl::ConsumePrefix(&name, "AZ_BATCHAI_PREV_OUTPUT_")) ||
          absl::ConsumePrefix(&name, "AZURE_ML_OUTPUT_")) &&
         std::any_of(job.outputs.begin(), job.outputs.end(),
                     [&](const auto& output) { return AsVariableName(output.first) == name; });
}

}  // namespace

bool HasRanks(const Distribution& distribution, int world_size) {
  return DriverOf(distribution).has_ranks || world_size > 1;
}

std::optional<absl::string_view> SetByTutti(const JobSpec& job, absl::string_view name) {
  if (const Row* row =
          HasRanks(job.distribution, job.WorldSize()) ? Find(kOfRanks, job, name) : nullptr)
    return row->value;
  if (const Row* row = Find(kOthers, job, name)) return row->value;
  for (const auto& [own, value] : DriverOf(job.distribution).variables) {
    if (own == name) return value;
  }
  if (NamesInput(job, name)) return "the path or value of the input";
  if (NamesOutput(job, name)) return "the folder of the output";
  return std::nullopt;
}

std::string AsVariableName(absl::string_view name) {
  std::string result(name);
  for (char& c : result) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return result;
}

}  // namespace tutti::spec
