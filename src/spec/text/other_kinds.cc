#include "spec/text/other_kinds.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"

namespace tutti::spec {
namespace {

constexpr absl::string_view kServing =
    "it serves a model, which jobs do not: `tutti score` classifies images with a trained one";
constexpr absl::string_view kOfWorkspace =
    "it describes a workspace of Azure, and here there is none";

struct FileKind {
  absl::string_view schema;  // begins so, in lower case
  absl::string_view kind;
  absl::string_view advice;  // FILE and ./FILE: the file, and the file from beside it
};

constexpr absl::string_view kComponentAdvice =
    "name it in a pipeline's step as component: ./FILE, or make it known by `tutti component "
    "create "
    "--file FILE`";

constexpr FileKind kFiles[] = {
    {"commandcomponent.", "component", kComponentAdvice},
    {"pipelinecomponent.", "component", kComponentAdvice},
    {"sparkcomponent.", "spark component", "it needs a Spark cluster, which is not here"},
    {"parallelcomponent.", "parallel component",
     "it is fed by a driver of Azure ML; write a command component that reads its share by RANK"},
    {"environment.", "environment",
     "name it in a job file as environment: file:./FILE, or make it known by `tutti environment "
     "create --file FILE`"},
    {"conda.", "conda environment", "name it in an environment as conda_file: ./FILE"},
    {"dataimport.", "data import", "bring the data here, then `tutti data create --file FILE`"},
    {"data.", "data", "make it known by `tutti data create --file FILE`"},
    {"model.", "model", "make it known by `tutti model create --file FILE`"},
    {"schedule.", "schedule", "have cron submit the job that it names, by tutti job create --file"},
    {"monitorschedule.", "schedule", "nothing here is monitored by schedule"},
    {"managedonlinedeployment.", "deployment", kServing},
    {"kubernetesonlinedeployment.", "deployment", kServing},
    {"batchdeployment.", "deployment", kServing},
    {"modelbatchdeployment.", "deployment", kServing},
    {"pipelinecomponentbatchdeployment.", "deployment", "run its pipeline as a job"},
    {"managedonlineendpoint.", "endpoint", kServing},
    {"kubernetesonlineendpoint.", "endpoint", kServing},
    {"batchendpoint.", "endpoint", kServing},
    {"modelversionpackage.", "model package", kServing},
    {"workspace.", "workspace", kOfWorkspace},
    {"registry.", "registry", kOfWorkspace},
    {"workspaceconnection.", "connection", kOfWorkspace},
    {"azureblob.", "datastore", "make it known by `tutti datastore create --file FILE`"},
    {"azurefile.", "datastore", "make it known by `tutti datastore create --file FILE`"},
    {"azuredatalakegen1.", "datastore", "make it known by `tutti datastore create --file FILE`"},
    {"azuredatalakegen2.", "datastore", "make it known by `tutti datastore create --file FILE`"},
    {"onelake.", "datastore", "make it known by `tutti datastore create --file FILE`"},
    {"featureset.", "feature set", kOfWorkspace},
    {"featurestore", "feature store", kOfWorkspace},
    {"flow.", "prompt flow", "it is run by promptflow and not as a job"},
    {"run.", "prompt flow run", "it is run by promptflow and not as a job"},
    {"runconfig.", "run configuration (SDK v1)",
     "write its script and arguments as command:, its target as compute: and its environment as "
     "environment: of a job file"},
    {"kubernetes.", "Kubernetes object",
     "write what its container runs as command: of a job file, and its image as environment:"},
};

constexpr FileKind kCompute = {"", "compute",
                               "make it known by `tutti compute create --file FILE`"};

constexpr FileKind kOfBatchAi = {"", "job of Batch AI",
                                 "submit it by `tutti batchai job create -f FILE`, or see it as a "
                                 "job file by `tutti batchai convert FILE`"};

constexpr FileKind kJob = {"", "job", "submit it by `tutti job create --file FILE`"};

struct Mark {
  absl::string_view key, value;  // any value, if empty
  absl::string_view schema;
};

constexpr Mark kMarks[] = {
    {"type", "uri_folder", "data."},
    {"type", "uri_file", "data."},
    {"type", "mltable", "data."},
    {"type", "custom_model", "model."},
    {"type", "mlflow_model", "model."},
    {"type", "triton_model", "model."},
    {"type", "amlcompute", "amlcompute."},
    {"type", "computeinstance", "computeinstance."},
    {"type", "virtualmachine", "virtualmachinecompute."},
    {"type", "kubernetes", "kubernetescompute."},
    {"type", "synapsespark", "synapsesparkcompute."},
    {"type", "azure_blob", "azureblob."},
    {"type", "azure_file", "azurefile."},
    {"type", "azure_data_lake_gen1", "azuredatalakegen1."},
    {"type", "azure_data_lake_gen2", "azuredatalakegen2."},
    {"type", "one_lake", "onelake."},
    {"type", "s3", "azureblob."},
    {"type", "gcs", "azureblob."},
    {"type", "nfs", "azureblob."},
    {"endpoint_name", "", "managedonlinedeployment."},
    {"auth_mode", "", "managedonlineendpoint."},
    {"create_job", "", "schedule."},
    {"create_monitor", "", "monitorschedule."},
    {"dependencies", "", "conda."},
    {"conda_file", "", "environment."},
    {"image", "", "environment."},
    {"build", "", "environment."},
};

// No file of Azure ML's v2 has one of these at its top, whatever else it says.
constexpr Mark kMarksOfOthers[] = {
    {"apiVersion", "", "kubernetes."},
    {"communicator", "", "runconfig."},
    {"script", "", "runconfig."},
};

// Components say what is to be run, as jobs do.
constexpr Mark kMarksOfComponents[] = {
    {"version", "", "commandcomponent."},
    {"is_deterministic", "", "commandcomponent."},
};

// The keys that a job may have and a component may not, although both say what is to be run.
constexpr absl::string_view kKeysOfJobs[] = {"compute",  "experiment_name", "queue_settings",
                                             "services", "identity",        "trial"};

struct JobType {
  absl::string_view type, reason;
};

constexpr JobType kTypes[] = {
    {"automl",
     "a service of Azure ML writes its training and chooses its models; a sweep over a script of "
     "one's own is the nearest"},
    {"spark", "it needs a Spark cluster, which is not here"},
    {"parallel",
     "a driver of Azure ML deals out its mini-batches; a command on several nodes that reads its "
     "share by RANK and WORLD_SIZE is the nearest"},
    {"import", "it copies from databases; bring the data here and name them by tutti data create"},
    {"data_transfer", "it copies between stores of Azure; a command that copies is the nearest"},
    {"finetuning", "it trains models of Azure's catalogue, which are not here"},
    {"base", "it has no schema; write type: command"},
    {"if_else", "steps depend on each other by data alone here"},
    {"do_while", "steps are run once here; loop in a command"},
    {"parallel_for", "steps are run once here; a sweep runs one with many values"},
};

absl::string_view SchemaMarkedBy(const YamlNode::Entry& entry, absl::Span<const Mark> marks) {
  for (const Mark& mark : marks) {
    if (entry.key != mark.key) continue;
    if (mark.value.empty() || absl::EqualsIgnoreCase(entry.value->scalar, mark.value)) {
      return mark.schema;
    }
  }
  return "";
}

// The schema of a file that names none, by an entry at its top; "" if that does not tell. `runs`:
// the file says what is to be run.
absl::string_view SchemaMarkedBy(const YamlNode::Entry& entry, bool runs) {
  if (runs) return SchemaMarkedBy(entry, absl::MakeConstSpan(kMarksOfComponents));
  return SchemaMarkedBy(entry, absl::MakeConstSpan(kMarks));
}

const FileKind* KindOfSchema(absl::string_view schema) {
  for (const FileKind& kind : kFiles) {
    if (absl::StartsWith(schema, kind.schema)) return &kind;
  }
  if (absl::StrContains(schema, "job.")) return &kJob;
  return absl::StrContains(schema, "compute") ? &kCompute : nullptr;  // they have many schemas
}

bool SaysWhatToRun(const YamlNode::Entry& entry) {
  if (entry.key == "command" || entry.key == "jobs" || entry.key == "trial") return true;
  if (entry.key != "type") return false;
  const std::string type = absl::AsciiStrToLower(entry.value->scalar);
  return type == "command" || type == "pipeline" || type == "sweep" || !NotRunBecause(type).empty();
}

struct RecognizedKind {
  const FileKind* kind = nullptr;  // nullptr: by nothing
  const YamlNode::Entry* by = nullptr;
};

// All that a file of Batch AI has at its top; what it says is below "properties". A job of Azure
// ML's v2 has properties too, a map of the user's, but none without what is to be run.
constexpr absl::string_view kTopOfBatchAi[] = {"$schema",    "id",       "name", "type",
                                               "apiVersion", "location", "tags", "properties"};

const YamlNode::Entry* FindMarkOfBatchAi(const YamlNode& root) {
  for (const YamlNode::Entry& entry : root.entries) {
    if (std::find(std::begin(kTopOfBatchAi), std::end(kTopOfBatchAi), entry.key) ==
        std::end(kTopOfBatchAi)) {
      return nullptr;
    }
  }
  const YamlNode::Entry* const properties = FindEntry(root, "properties");
  if (properties == nullptr) return nullptr;
  return FindEntry(*properties->value, "nodeCount") == nullptr ? nullptr : properties;
}

RecognizedKind Recognize(const YamlNode& root) {
  if (const YamlNode::Entry* const mark = FindMarkOfBatchAi(root)) return {&kOfBatchAi, mark};
  const std::string schema = SchemaOf(root);
  if (!schema.empty()) return {KindOfSchema(schema), FindEntry(root, "$schema")};
  const YamlNode::Entry* type = FindEntry(root, "type");
  const bool is_job_type = type != nullptr && SchemaMarkedBy(*type, /*runs=*/false).empty();
  const bool runs = is_job_type || FindEntry(root, "command") || FindEntry(root, "jobs") ||
                    FindEntry(root, "trial");
  for (const YamlNode::Entry& entry : root.entries) {
    const absl::string_view others = SchemaMarkedBy(entry, absl::MakeConstSpan(kMarksOfOthers));
    if (!others.empty()) return {KindOfSchema(others), &entry};
  }
  for (const YamlNode::Entry& entry : root.entries) {
    const absl::string_view by_keys = SchemaMarkedBy(entry, runs);
    if (!by_keys.empty()) return {KindOfSchema(by_keys), &entry};
  }
  for (const YamlNode::Entry& entry : root.entries) {
    if (SaysWhatToRun(entry)) return {&kJob, &entry};
  }
  return {};
}

bool MayBeComponent(const YamlNode& root) {
  return std::none_of(std::begin(kKeysOfJobs), std::end(kKeysOfJobs),
                      [&](absl::string_view key) { return FindEntry(root, key) != nullptr; });
}

}  // namespace

std::string SchemaOf(const YamlNode& root) {
  const YamlNode::Entry* entry = FindEntry(root, "$schema");
  if (entry == nullptr) return "";
  const std::string schema = absl::AsciiStrToLower(entry->value->scalar);
  return schema.substr(schema.rfind('/') + 1);
}

std::optional<OtherKind> OtherKindThan(absl::string_view expected, const YamlNode& root,
                                       absl::string_view file) {
  const RecognizedKind found = Recognize(root);
  if (found.kind == nullptr || found.kind->kind == expected) return std::nullopt;
  if (found.kind == &kJob && expected == "component" && MayBeComponent(root)) return std::nullopt;
  const std::string beside = absl::StrCat("./", file.substr(file.rfind('/') + 1));
  const std::string advice =
      absl::StrReplaceAll(found.kind->advice, {{"./FILE", beside}, {"FILE", file}});
  return OtherKind{absl::StrCat("a file of kind ", found.kind->kind, ", where one of kind ",
                                expected, " is expected: ", advice),
                   found.by->line};
}

absl::Status CheckKind(absl::string_view expected, const YamlNode& root, Diagnostics& diagnostics) {
  const auto other = OtherKindThan(expected, root, diagnostics.file_name());
  if (!other) return absl::OkStatus();
  diagnostics.Error(other->line, absl::StrCat("this is ", other->message));
  return diagnostics.status();
}

absl::string_view NotRunBecause(absl::string_view type) {
  for (const JobType& known : kTypes) {
    if (known.type == type) return known.reason;
  }
  return "";
}

}  // namespace tutti::spec
