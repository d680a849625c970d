#include "spec/other_kinds.h"

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
    "it serves a model, which jobs do not: `tutti score` classifies pictures with a trained one";
constexpr absl::string_view kOfWorkspace =
    "it describes a workspace of Azure, and here there is none";

struct FileKind {
  absl::string_view schema;  // begins so, in lower case
  absl::string_view kind;
  absl::string_view advice;  // FILE and ./FILE: the file, and the file from beside it
};

constexpr FileKind kFiles[] = {
    {"commandcomponent.", "component", "name it in a pipeline's step as component: ./FILE"},
    {"pipelinecomponent.", "component", "name it in a pipeline's step as component: ./FILE"},
    {"sparkcomponent.", "spark component", "it needs a Spark cluster, which is not here"},
    {"parallelcomponent.", "parallel component",
     "it is fed by a driver of Azure ML; write a command component that reads its share by RANK"},
    {"environment.", "environment", "name it in a job file as environment: file:./FILE"},
    {"conda.", "conda environment", "name it in a job's environment as conda_file: ./FILE"},
    {"dataimport.", "data import", "bring the data here, then `tutti data create --file FILE`"},
    {"data.", "data", "make it known by `tutti data create --file FILE`"},
    {"model.", "model", "a job takes it as an input of type custom_model or mlflow_model, by path"},
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
    {"azureblob.", "datastore", "map its address to a copy: tutti data map ADDRESS FOLDER"},
    {"azurefile.", "datastore", "map its address to a copy: tutti data map ADDRESS FOLDER"},
    {"azuredatalakegen1.", "datastore", "map its address to a copy: tutti data map ADDRESS FOLDER"},
    {"azuredatalakegen2.", "datastore", "map its address to a copy: tutti data map ADDRESS FOLDER"},
    {"featureset.", "feature set", kOfWorkspace},
    {"featurestore", "feature store", kOfWorkspace},
    {"flow.", "prompt flow", "it is run by promptflow and not as a job"},
    {"run.", "prompt flow run", "it is run by promptflow and not as a job"},
};

constexpr FileKind kCompute = {"", "compute",
                               "make it known by `tutti compute create --file FILE`"};

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
    {"type", "synapsespark", "synapsesparkcompute."},
    {"type", "azure_blob", "azureblob."},
    {"type", "azure_file", "azurefile."},
    {"type", "azure_data_lake_gen1", "azuredatalakegen1."},
    {"type", "azure_data_lake_gen2", "azuredatalakegen2."},
    {"endpoint_name", "", "managedonlinedeployment."},
    {"auth_mode", "", "managedonlineendpoint."},
    {"create_job", "", "schedule."},
    {"create_monitor", "", "monitorschedule."},
    {"dependencies", "", "conda."},
    {"conda_file", "", "environment."},
    {"image", "", "environment."},
    {"build", "", "environment."},
};

// Components say what is to be run, as jobs do.
constexpr Mark kMarksOfComponents[] = {
    {"version", "", "commandcomponent."},
    {"is_deterministic", "", "commandcomponent."},
};

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

// Of the schemas of computes, which are many.
bool IsCompute(absl::string_view schema) { return absl::StrContains(schema, "compute"); }

}  // namespace

std::string NoJobBecause(absl::string_view schema, absl::string_view file) {
  const std::string name = absl::AsciiStrToLower(schema);
  const auto found = std::find_if(std::begin(kFiles), std::end(kFiles), [&](const FileKind& known) {
    return absl::StartsWith(name, known.schema);
  });
  if (found == std::end(kFiles) && !IsCompute(name)) return "";
  const FileKind& kind = found == std::end(kFiles) ? kCompute : *found;
  const std::string beside = absl::StrCat("./", file.substr(file.rfind('/') + 1));
  return absl::StrCat("this is a file of kind ", kind.kind, ": ",
                      absl::StrReplaceAll(kind.advice, {{"./FILE", beside}, {"FILE", file}}));
}

absl::string_view SchemaToldBy(absl::string_view key, absl::string_view value, bool runs) {
  const absl::Span<const Mark> marks =
      runs ? absl::MakeConstSpan(kMarksOfComponents) : absl::MakeConstSpan(kMarks);
  for (const Mark& mark : marks) {
    if (key != mark.key) continue;
    if (mark.value.empty() || absl::EqualsIgnoreCase(value, mark.value)) return mark.schema;
  }
  return "";
}

absl::string_view NotRunBecause(absl::string_view type) {
  for (const JobType& known : kTypes) {
    if (known.type == type) return known.reason;
  }
  return "";
}

}  // namespace tutti::spec
