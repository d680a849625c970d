#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/client/commands/batch_ai_volumes.h"
#include "platform/client/commands/commands.h"
#include "platform/client/connection/service_client.h"
#include "platform/client/connection/views.h"
#include "platform/client/jobs/batch_ai_log.h"
#include "platform/client/jobs/choose_job.h"
#include "platform/client/script/script_job.h"
#include "platform/client/submit/submit.h"
#include "platform/client/text/amounts.h"
#include "platform/client/text/table.h"
#include "spec/data/data_address.h"
#include "spec/data/datastore.h"
#include "spec/data/home_list.h"
#include "spec/json/json_fields.h"
#include "spec/site/compute_file.h"
#include "spec/site/site.h"

namespace tutti::client {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestBatchAiFile = 1 << 20;
constexpr size_t kNameBytes = 4;  // of a job's name that is made up
constexpr int kOwnersAlone = 0600;

absl::StatusOr<std::string> ReadBatchAiFile(const std::string& file) {
  auto text = base::ReadFile(file, kLargestBatchAiFile);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return text;
}

// `text`: the job's file.
absl::StatusOr<spec::BatchAiOptions> ConversionOf(const Context& context,
                                                  const BatchAiCommandOptions& options,
                                                  const std::string& text) {
  spec::BatchAiOptions conversion{.name = options.name,
                                  .cluster = options.cluster,
                                  .experiment = options.experiment,
                                  .storage_account = options.storage_account,
                                  .cluster_text = "",
                                  .cluster_file = options.cluster_file};
  TUTTI_ASSIGN_OR_RETURN(const std::string cluster,
                         spec::ClusterOfBatchAiJob(text, options.file, options.cluster));
  std::error_code error;
  const fs::path noted = VolumesFile(context.home, cluster);
  if (conversion.cluster_file.empty() && !cluster.empty() && fs::exists(noted, error)) {
    conversion.cluster_file = noted.string();
  }
  if (conversion.cluster_file.empty()) return conversion;
  TUTTI_ASSIGN_OR_RETURN(conversion.cluster_text, ReadBatchAiFile(conversion.cluster_file));
  return conversion;
}

bool HasValues(const spec::BatchAiJob& job) {
  return std::any_of(job.secrets.begin(), job.secrets.end(),
                     [](const spec::BatchAiSecret& secret) { return !secret.value.empty(); });
}

struct JobToSubmit {
  spec::BatchAiJob job;
  spec::BatchAiJob checked;  // the same without the secrets that are set once it is found good
};

// The secrets of a job are called after it, so one with values has a name of its own: another job
// that waits would get these values.
absl::StatusOr<JobToSubmit> ConvertedToSubmit(Context& context,
                                              const BatchAiCommandOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadBatchAiFile(options.file));
  TUTTI_ASSIGN_OR_RETURN(spec::BatchAiOptions conversion, ConversionOf(context, options, text));
  JobToSubmit converted;
  TUTTI_ASSIGN_OR_RETURN(converted.job, spec::ConvertBatchAiJob(text, options.file, conversion));
  if (conversion.name.empty() && HasValues(converted.job)) {
    conversion.name = absl::StrCat("batchai-", base::RandomHex(kNameBytes));
    context.err << "the job is called " << conversion.name
                << ", after which its secrets are called; -n names it" << std::endl;
    TUTTI_ASSIGN_OR_RETURN(converted.job, spec::ConvertBatchAiJob(text, options.file, conversion));
  }
  conversion.without_values = true;
  TUTTI_ASSIGN_OR_RETURN(converted.checked,
                         spec::ConvertBatchAiJob(text, options.file, conversion));
  return converted;
}

// Before anything is changed for the job.
absl::Status CheckNameIsFree(Context& context, const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  const absl::Status known = ServiceClient(context.connect()).Job(name).status();
  if (absl::IsUnavailable(known)) return known;
  if (!known.ok()) return absl::OkStatus();  // a name that cannot be is told with the job's faults
  return absl::AlreadyExistsError(
      absl::StrCat("there is a job named ", name, " already: give another name by -n"));
}

// The values that the file has go to the service, which alone keeps them.
absl::Status SetSecrets(Context& context, const std::vector<spec::BatchAiSecret>& secrets) {
  for (const spec::BatchAiSecret& secret : secrets) {
    if (secret.value.empty()) continue;
    TUTTI_RETURN_IF_ERROR(ServiceClient(context.connect()).SetSecret(secret.secret, secret.value));
    context.err << "secret " << secret.secret << " has the value of " << secret.variable
                << std::endl;
  }
  return absl::OkStatus();
}

// Says why the key of the file is not taken.
void SayKept(Context& context, const spec::BatchAiStore& store, const spec::DataPlace& place) {
  context.err << "datastore " << place.datastore << " is kept for " << store.address
              << ": the key that the file has is not used"
              << (place.credential == spec::CredentialKind::kNone ? ", and it has no credentials"
                                                                  : "")
              << std::endl;
}

// A key that the file has goes into a datastore, by which the job reaches the store. One of that
// store that somebody else has made is kept; of this command's own the key is set anew.
absl::Status MakeStores(Context& context, const std::string& file,
                        const std::vector<spec::BatchAiStore>& stores) {
  for (const spec::BatchAiStore& store : stores) {
    TUTTI_ASSIGN_OR_RETURN(const spec::Datastores known, spec::ReadDatastores(context.home));
    const auto place = spec::PlaceOf(store.address, known);
    const bool is_known = place.ok() && place->has_value() && !(*place)->datastore.empty();
    if (is_known && (*place)->datastore != store.name) {
      SayKept(context, store, **place);
      continue;
    }
    DatastoreOptions create;
    create.file = absl::StrCat("datastore ", store.name, " of ", file);
    create.text = store.text;
    // Its output is not this command's.
    Context beside{context.connect, context.home, context.program_folder, context.version,
                   context.err,     context.err,  context.err_screen,     context.err_screen};
    TUTTI_RETURN_IF_ERROR(DatastoreCreate(beside, create).status());
  }
  return absl::OkStatus();
}

void Warn(Context& context, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    context.err << "warning: " << warning << std::endl;
  }
}

// Says of which output directories the job has files; one that is empty so far has none.
void SayDirectories(Context& context, const std::string& asked,
                    const std::vector<FileView>& files) {
  std::set<std::string> directories = {"stdouterr"};
  for (const FileView& file : files) {
    const std::vector<std::string> parts = absl::StrSplit(file.path, '/');
    if (parts.size() > 2 && parts[0] == "outputs") directories.insert(parts[1]);
  }
  context.err << "no files of output directory " << asked << "; there are files of "
              << absl::StrJoin(directories, ", ") << std::endl;
}

// A compute that has no file has the nodes that the site says.
absl::Status WhyNotResized(Context& context, const std::string& name) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(context.home));
  if (AllComputes(site).contains(absl::AsciiStrToLower(name))) {
    return absl::InvalidArgumentError(absl::StrCat(
        name,
        " has all nodes that the site gives it: make a cluster of it, and resize that: tutti "
        "batchai cluster create -f cluster.json -n OTHER --as ",
        name));
  }
  return absl::NotFoundError(
      absl::StrCat("there is no cluster ", name, "; `tutti batchai cluster list` shows all"));
}

}  // namespace

absl::StatusOr<ExitCode> BatchAiConvert(Context& context, const BatchAiCommandOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadBatchAiFile(options.file));
  TUTTI_ASSIGN_OR_RETURN(const spec::BatchAiOptions conversion,
                         ConversionOf(context, options, text));
  TUTTI_ASSIGN_OR_RETURN(const spec::BatchAiJob job,
                         spec::ConvertBatchAiJob(text, options.file, conversion));
  Warn(context, job.warnings);
  for (const spec::BatchAiSecret& secret : job.secrets) {
    context.err << "to be set: tutti secret set " << secret.secret << "   (the job's variable "
                << secret.variable << ")" << std::endl;
  }
  for (const spec::BatchAiStore& store : job.stores) {
    context.err << "to be made: a datastore of " << store.address
                << " with the account's key (tutti datastore create --file FILE)" << std::endl;
  }
  if (options.save.empty()) {
    context.out << job.text;
    return ExitCode::kOk;
  }
  TUTTI_RETURN_IF_ERROR(CheckCanSave(job.text, options.save));
  TUTTI_RETURN_IF_ERROR(SaveJob(job.text, options.save));
  context.err << "saved: " << options.save << "; tutti run " << options.save << " runs it\n";
  return ExitCode::kOk;
}

// Its secrets are made last, since a job that is refused would leave them behind.
absl::StatusOr<ExitCode> BatchAiJobCreate(Context& context, const BatchAiCommandOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const JobToSubmit converted, ConvertedToSubmit(context, options));
  const spec::BatchAiJob& job = converted.job;
  TUTTI_RETURN_IF_ERROR(CheckNameIsFree(context, options.name));
  if (!options.save.empty()) TUTTI_RETURN_IF_ERROR(CheckCanSave(job.text, options.save));
  TUTTI_RETURN_IF_ERROR(MakeStores(context, options.file, job.stores));
  TUTTI_RETURN_IF_ERROR(CheckJob(&context.connect, context.home,
                                 {.path = options.file, .batch_ai = converted.checked})
                            .status());
  TUTTI_RETURN_IF_ERROR(SetSecrets(context, job.secrets));
  RunOptions run;
  run.file = options.file;
  run.script.save = options.save;
  run.detach = true;
  run.format = options.format;
  run.batch_ai = job;
  return Run(context, run);
}

absl::StatusOr<ExitCode> BatchAiClusterCreate(Context& context,
                                              const BatchAiCommandOptions& options) {
  TUTTI_RETURN_IF_ERROR(spec::CheckAssetName("--name", options.name));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadBatchAiFile(options.file));
  TUTTI_ASSIGN_OR_RETURN(
      const spec::BatchAiCluster cluster,
      spec::ConvertBatchAiCluster(text, options.file, options.name, options.storage_account));
  Warn(context, cluster.warnings);
  ComputeOptions compute;
  compute.file = absl::StrCat("compute of ", options.file);
  compute.text = cluster.compute;
  compute.stands_for = options.cluster;
  TUTTI_ASSIGN_OR_RETURN(const ExitCode code, ComputeCreate(context, compute));
  TUTTI_RETURN_IF_ERROR(MakeStores(context, options.file, cluster.stores));
  const fs::path volumes = VolumesFile(context.home, options.name);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(volumes.parent_path()));
  TUTTI_RETURN_IF_ERROR(base::WriteFileAtomic(volumes, cluster.volumes, kOwnersAlone));
  return code;
}

absl::StatusOr<ExitCode> BatchAiClusterResize(Context& context,
                                              const BatchAiCommandOptions& options) {
  if (options.target < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--target ", options.target, ": a job has at least one node, and nodes that no job has ",
        "cost nothing here; tutti batchai cluster delete -n ", options.name, " forgets the name"));
  }
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock,
                         spec::LockList(spec::ComputesFile(context.home)));
  TUTTI_ASSIGN_OR_RETURN(spec::ComputeFiles computes, spec::ReadComputes(context.home));
  const auto found = computes.find(absl::AsciiStrToLower(options.name));
  if (found == computes.end()) return WhyNotResized(context, options.name);
  found->second.max_instances = options.target;
  TUTTI_RETURN_IF_ERROR(spec::WriteComputes(context.home, computes));
  context.out << "a job may have " << options.target << (options.target == 1 ? " node" : " nodes")
              << " of azureml:" << found->second.name << "\n";
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> BatchAiFileServerCreate(Context& context,
                                                 const BatchAiCommandOptions& options) {
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadBatchAiFile(options.file));
  spec::FileServerPlace place = options.place;
  place.folder = fs::absolute(place.folder).lexically_normal().string();
  TUTTI_ASSIGN_OR_RETURN(const spec::BatchAiFileServer server,
                         spec::ConvertBatchAiFileServer(text, options.file, options.name, place));
  Warn(context, server.warnings);
  FileServerOptions create;
  create.file = absl::StrCat("file server of ", options.file);
  create.text = server.text;
  return FileServerCreate(context, create);
}

absl::StatusOr<ExitCode> BatchAiFileList(Context& context, const BatchAiCommandOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  TUTTI_ASSIGN_OR_RETURN(const std::string text, service.Files(id));
  TUTTI_ASSIGN_OR_RETURN(const FilesView view, Parse<FilesView>(text));
  const bool logs = absl::EqualsIgnoreCase(options.directory, "stdouterr");
  const std::string folder = logs ? "logs/" : absl::StrCat("outputs/", options.directory, "/");
  Table table({{"FILE"}, {"SIZE", Table::Align::kRight}});
  nlohmann::json list = nlohmann::json::array();
  for (const FileView& file : view.files) {
    absl::string_view name = file.path;
    if (!absl::ConsumePrefix(&name, folder)) continue;
    list.push_back({{"name", name}, {"contentLength", file.bytes}, {"fileType", "file"}});
    table.Add({{std::string(name)}, {Bytes(file.bytes)}});
  }
  if (list.empty() && !logs) SayDirectories(context, options.directory, view.files);
  if (options.format != Format::kTable) {
    TUTTI_RETURN_IF_ERROR(WriteStructured(context.out, spec::Dump(list), options.format));
    return ExitCode::kOk;
  }
  context.out << table.Render(context.out_screen.width, context.out_screen.colour);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> BatchAiFileStream(Context& context, const BatchAiCommandOptions& options) {
  ServiceClient service(context.connect());
  TUTTI_ASSIGN_OR_RETURN(const std::string id, ResolveJob(service, options.job));
  const auto log = LogOfBatchAi(options.path);
  if (!log) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", options.path, "\" is no log that Batch AI had: write stdout.txt, stderr.txt, ",
        "stdout-1.txt, stderr-1.txt or stdout-wk-0.txt. A parameter server's is by its rank, which "
        "follows the workers' (tutti job stream ",
        id, " --rank R), and other files come by tutti job download ", id));
  }
  JobStreamOptions stream;
  stream.job = id;
  stream.no_prefix = true;
  stream.only_stderr = log->is_stderr;
  stream.only_stdout = !log->is_stderr;
  stream.only_rank = log->rank;
  return JobStream(context, stream);
}

}  // namespace tutti::client
