// Declares the commands of the program `tutti`, one function each; every command, or small group of
// them, has a source file of its own. A command talks to the service through Context, writes what
// it shows, and returns the program's exit code; an error that it returns is shown by the caller,
// as "tutti: …", and gives the code of ExitCodeOf.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "platform/client/connection/connection.h"
#include "platform/client/script/script_job.h"
#include "platform/client/submit/job_text.h"
#include "platform/client/text/exit_code.h"
#include "platform/client/text/structured_output.h"
#include "platform/client/text/style.h"
#include "spec/batchai/batch_ai_cluster.h"
#include "spec/batchai/batch_ai_job.h"
#include "spec/data/asset.h"
#include "spec/site/site.h"
#include "spec/types/job.h"

namespace tutti::client {

// A Python environment that is made: where it lies, and what differs from what was asked for.
struct BuiltEnvironment {
  std::filesystem::path folder;
  std::string note;
};
// Makes it below `environments` as launchers do, for nodes with GPUs or without. Unavailable: this
// machine has no way to the package index.
using BuildEnvironment = std::function<absl::StatusOr<BuiltEnvironment>(
    const spec::Environment& environment, const std::filesystem::path& environments,
    bool nodes_have_gpus)>;

struct Context {
  Connect connect;
  std::filesystem::path home;            // the service's state folder
  std::filesystem::path program_folder;  // where tutti itself lies
  std::string version;
  std::ostream& out;
  std::ostream& err;
  Screen out_screen, err_screen;
  BuildEnvironment build_environment = {};
};

struct RunOptions {
  std::string file;                   // a job's, or a script; of Rerun: a job
  std::vector<std::string> settings;  // "inputs.x=5"
  std::vector<KeyOption> keys;        // of other options
  ScriptOptions script;
  // The earlier job that it resumes from; empty: as the file says. Of Rerun it is the job itself:
  // `resumes` says whether it does.
  std::string resume;
  bool resumes = false;
  bool detach = false;  // submit and return
  bool cancel_on_interrupt = false;
  int only_rank = -1;
  Format format = Format::kTable;
  std::optional<spec::BatchAiJob> batch_ai = {};  // given: what the file is, a job of Batch AI's
};
absl::StatusOr<ExitCode> Run(Context& context, const RunOptions& options);
// Submits a job once more, which `options.file` names, and follows it.
absl::StatusOr<ExitCode> Rerun(Context& context, const RunOptions& options);

struct JobValidateOptions {
  std::string file;
  std::vector<std::string> settings;
  std::vector<KeyOption> keys;
  ScriptOptions script;
  bool offline = false;  // only the checks that need no service
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> JobValidate(Context& context, const JobValidateOptions& options);

// A job file by answers to three questions: what is run, on how many nodes, with what installed.
struct InitOptions {
  std::string file = "job.yml";
  std::string script;   // or
  std::string command;  // of a shell
  ScriptOptions job;
};
// Asks on a terminal for what is not given; elsewhere that is InvalidArgument. Overwrites nothing.
absl::StatusOr<ExitCode> Init(Context& context, const InitOptions& options);

struct JobUpgradeOptions {
  std::string file;
  std::string save;  // the file to write; empty: it is shown
};
absl::StatusOr<ExitCode> JobUpgrade(Context& context, const JobUpgradeOptions& options);

struct JobListOptions {
  std::string state;             // one or several, with commas
  std::string experiment, name;  // empty: all; `name`: a part of a name or a title
  absl::Duration age = absl::InfiniteDuration();
  int limit = 20;
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> JobList(Context& context, const JobListOptions& options);

// Options of commands about one job, which `job` names: its id, or the unique start of one.
struct JobOptions {
  std::string job;
  bool all = false;  // show lists in full, not their first few entries
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> JobShow(Context& context, const JobOptions& options);

// Shows what differs between a job and another, by default its script's last job before it.
struct JobDiffOptions {
  std::string job, other;  // `other` empty: that one
};
absl::StatusOr<ExitCode> JobDiff(Context& context, const JobDiffOptions& options);

struct JobMetricsOptions {
  std::string job;
  int only_rank = -1;
  int points = 0;       // of each resolution; 0: as many as are usual
  bool follow = false;  // what is reported, until the job has ended
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> JobMetrics(Context& context, const JobMetricsOptions& options);

// `tutti top`: nodes and jobs, or the ranks of one job, again and again on a terminal.
struct TopOptions {
  std::string job;  // empty: all
  absl::Duration interval = absl::Seconds(2);
  bool once = false;  // as it is where standard output is no terminal
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> Top(Context& context, const TopOptions& options);

struct PortalOptions {
  std::string url;          // which page, as a browser's address names it; empty: the first
  bool only_print = false;  // starts no browser
  bool signs_out = false;   // ends all sessions instead
};
// Makes a link that signs a browser in, and opens it where there is a browser.
absl::StatusOr<ExitCode> Portal(Context& context, const PortalOptions& options);

struct JobStacksOptions {
  std::string job;
  int only_rank = -1;
  bool native = false;
  int wait = 60;  // seconds
  Format format = Format::kTable;
};
// Shows what the processes of a job that runs are doing. kSystemError if no rank has said it.
absl::StatusOr<ExitCode> JobStacks(Context& context, const JobStacksOptions& options);

struct JobStreamOptions {
  std::string job;
  int only_rank = -1;
  bool only_stderr = false;
  bool only_stdout = false;
  bool no_follow = false;
  bool no_prefix = false;
  std::string since;  // cursor
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> JobStream(Context& context, const JobStreamOptions& options);

struct JobWaitOptions {
  std::string job;
  absl::Duration timeout = absl::InfiniteDuration();
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> JobWait(Context& context, const JobWaitOptions& options);

struct JobCancelOptions {
  std::string job;
  bool wait = false;
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> JobCancel(Context& context, const JobCancelOptions& options);

struct JobDownloadOptions {
  std::string job;
  std::string directory;  // empty: the job's id, here
  bool all = false;       // also the children's files, each child's in a folder of its own
  int wait = 300;         // seconds, for the nodes of a job that runs
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> JobDownload(Context& context, const JobDownloadOptions& options);

// `tutti tensorboard`: the event files of jobs, those of jobs that run again and again, in
// TensorBoard.
struct TensorBoardOptions {
  // Jobs, then what tensorboard is started with: from the first that begins with "-" on, as no
  // job's name does.
  std::vector<std::string> words, more;
};
absl::StatusOr<ExitCode> TensorBoard(Context& context, const TensorBoardOptions& options);

// `tutti batchai`: files of Azure Batch AI (docs/formats/batch-ai.md).
struct BatchAiCommandOptions {
  std::string file;
  std::string name;          // of the job, cluster or file server
  std::string cluster;       // of a job: the compute; its volumes, if it was made of a file
  std::string cluster_file;  // of a job: whose volumes the job has
  std::string experiment, storage_account;
  std::string save;                       // of convert and of a job: the job file to write
  int target = 0;                         // of a cluster's resize: nodes
  spec::FileServerPlace place;            // of a file server
  std::string job;                        // of files and of delete
  std::string directory;                  // of file list: an output's id, or stdouterr
  std::string path;                       // of file stream: the file's name
  std::string resource_group, workspace;  // Azure's, which have no effect
  bool yes = false;                       // nor has this
  Format format = Format::kTable;
};
// Shows the job's file, or writes it.
absl::StatusOr<ExitCode> BatchAiConvert(Context& context, const BatchAiCommandOptions& options);
absl::StatusOr<ExitCode> BatchAiJobCreate(Context& context, const BatchAiCommandOptions& options);
absl::StatusOr<ExitCode> BatchAiClusterCreate(Context& context,
                                              const BatchAiCommandOptions& options);
// Sets how many nodes a job may have of a compute that was made from a file.
absl::StatusOr<ExitCode> BatchAiClusterResize(Context& context,
                                              const BatchAiCommandOptions& options);
absl::StatusOr<ExitCode> BatchAiFileServerCreate(Context& context,
                                                 const BatchAiCommandOptions& options);
absl::StatusOr<ExitCode> BatchAiFileList(Context& context, const BatchAiCommandOptions& options);
absl::StatusOr<ExitCode> BatchAiFileStream(Context& context, const BatchAiCommandOptions& options);

// `tutti prune`: removes what `retention` in site.yml no longer keeps.
struct PruneOptions {
  bool dry_run = false;
  bool clock_is_right = false;
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> Prune(Context& context, const PruneOptions& options);

// `tutti cache`: the data that this node has fetched (cache/node_cache.h); needs no service.
struct CacheOptions {
  std::string folder;             // empty: HOME/data
  std::vector<std::string> keys;  // of show one; beginnings suffice
  std::string size, free;  // of prune: what the cache is to have, and the disk free, at the end
  bool dry_run = false;    // of prune
  bool verify = false;     // of show: reads all of it; kJobFailed if it is damaged
  // For warm: an address, as a job's input has it, and how many nodes or, of a cluster, which ones:
  // "n1,n2".
  std::string data, type = "uri_folder", nodes, compute = "local";
  bool detach = false;
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> CacheList(Context& context, const CacheOptions& options);
absl::StatusOr<ExitCode> CacheShow(Context& context, const CacheOptions& options);
absl::StatusOr<ExitCode> CachePrune(Context& context, const CacheOptions& options);
// Fetches data to nodes before a job needs them, by a job that has them as its input.
absl::StatusOr<ExitCode> CacheWarm(Context& context, const CacheOptions& options);

absl::StatusOr<ExitCode> JobDelete(Context& context, const std::vector<std::string>& jobs);

// Environments that are made on this machine: images, by podman, and Python's.
struct EnvironmentOptions {
  std::string file;   // a job's or an environment's, a list of packages, or a Dockerfile's folder
  std::string image;  // its name; a built one may have none
  std::string destination;   // in a registry; empty: as the image's name says
  std::string compute;       // for whose nodes; empty: as the job says
  std::optional<bool> gpus;  // whether these have GPUs; without a word: as this machine has
};
absl::StatusOr<ExitCode> EnvironmentBuild(Context& context, const EnvironmentOptions& options);
absl::StatusOr<ExitCode> EnvironmentPush(Context& context, const EnvironmentOptions& options);
absl::StatusOr<ExitCode> EnvironmentListBuilt(Context& context, Format format);
// Shows those that were made, if there are any, below the names.
void ShowBuiltEnvironments(Context& context, const spec::Site& site);

// Removes Python environments that were not used for a while, after it has asked.
struct EnvironmentPruneOptions {
  absl::Duration unused_for = absl::Hours(24 * 30);
  bool yes = false;
};
absl::StatusOr<ExitCode> EnvironmentPrune(Context& context, const EnvironmentPruneOptions& options);

// Computes by their files (spec/site/compute_file.h).
struct ComputeOptions {
  std::string file;
  std::string name;        // of create: in place of the file's
  std::string stands_for;  // local, or a compute of site.yml
  Format format = Format::kTable;
  std::string text = {};  // of create: in place of a file, which `file` names in messages
};
absl::StatusOr<ExitCode> ComputeCreate(Context& context, const ComputeOptions& options);
absl::StatusOr<ExitCode> ComputeList(Context& context, const ComputeOptions& options);
absl::StatusOr<ExitCode> ComputeShow(Context& context, const ComputeOptions& options);
absl::StatusOr<ExitCode> ComputeDelete(Context& context, const ComputeOptions& options);
// Returns all that jobs may name, by the name in lower case: those of files, and those that are
// there without one, which are this machine's nodes and what site.yml has.
spec::ComputeFiles AllComputes(const spec::Site& site);

// Data, environments and components by name and version (spec/data/asset.h).
struct AssetOptions {
  spec::AssetKind kind = spec::AssetKind::kData;
  std::string file;           // Azure ML's YAML
  std::string name, version;  // of create: in place of the file's
  bool built = false;         // of list: what was made of environments, and not their names
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> AssetCreate(Context& context, const AssetOptions& options);
absl::StatusOr<ExitCode> AssetList(Context& context, const AssetOptions& options);
absl::StatusOr<ExitCode> AssetShow(Context& context, const AssetOptions& options);
absl::StatusOr<ExitCode> AssetDelete(Context& context, const AssetOptions& options);

// `tutti model`: the service's model registry.
struct ModelOptions {
  std::string file;           // Azure ML's YAML
  std::string name, version;  // of register: in place of the file's
  std::string label;          // in place of a version: latest or an alias
  std::string path, job;      // of register: of this machine, or what the job has left
  std::string type;           // of register
  std::string description, stage;
  std::vector<std::string> tags;                      // "KEY=VALUE"
  std::vector<std::string> aliases, removed_aliases;  // of update
  std::string directory;                              // of download; empty: the current one
  bool archived = false;                              // of list: these too
  bool yes = false;                                   // of delete: do not ask
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> ModelRegister(Context& context, const ModelOptions& options);
absl::StatusOr<ExitCode> ModelList(Context& context, const ModelOptions& options);
absl::StatusOr<ExitCode> ModelShow(Context& context, const ModelOptions& options);
absl::StatusOr<ExitCode> ModelDownload(Context& context, const ModelOptions& options);
absl::StatusOr<ExitCode> ModelUpdate(Context& context, const ModelOptions& options);
absl::StatusOr<ExitCode> ModelArchive(Context& context, const ModelOptions& options);
absl::StatusOr<ExitCode> ModelRestore(Context& context, const ModelOptions& options);
absl::StatusOr<ExitCode> ModelDelete(Context& context, const ModelOptions& options);

// Local copies of data that has an address elsewhere (spec/data/data_map.h), in HOME/data-map.yml.
struct DataOptions {
  std::string prefix;
  std::string folder;  // or a file
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> DataMapAdd(Context& context, const DataOptions& options);
absl::StatusOr<ExitCode> DataUnmap(Context& context, const DataOptions& options);
// Lists the mapped prefixes and the data assets.
absl::StatusOr<ExitCode> DataList(Context& context, const DataOptions& options);

struct NodeListOptions {
  std::string compute;  // one that jobs may name, whose nodes alone are shown; empty: all
  std::string job;      // whose nodes alone are shown; empty: whosever
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> NodeList(Context& context, const NodeListOptions& options);
struct NodeCordonOptions {
  std::string node;
  std::string compute = "local";
  std::string reason = "by a user";
};
absl::StatusOr<ExitCode> NodeCordon(Context& context, const NodeCordonOptions& options);
// Checks that node or, without one, all nodes of this machine. kJobFailed if one is ill.
absl::StatusOr<ExitCode> NodeCheck(Context& context, const NodeCordonOptions& options);
absl::StatusOr<ExitCode> NodeUncordon(Context& context, const NodeCordonOptions& options);

// Datastores by name (spec/data/datastore.h); no command shows a credential.
struct DatastoreOptions {
  std::string file;                   // Azure ML's YAML, or of tutti's own types
  std::vector<std::string> settings;  // of create: "container_name=images"
  std::string name;
  bool yes = false;  // do not ask
  Format format = Format::kTable;
  std::string text = {};  // of create: in place of a file, which `file` names in messages
};
// Makes the datastore, or makes it anew. Its credentials go to the service, as a secret.
absl::StatusOr<ExitCode> DatastoreCreate(Context& context, const DatastoreOptions& options);
absl::StatusOr<ExitCode> DatastoreList(Context& context, const DatastoreOptions& options);
absl::StatusOr<ExitCode> DatastoreShow(Context& context, const DatastoreOptions& options);
absl::StatusOr<ExitCode> DatastoreDelete(Context& context, const DatastoreOptions& options);

// File servers of this machine (spec/data/file_server.h), which the service runs.
struct FileServerOptions {
  std::string file;  // of create
  std::string name;
  std::string from;  // of fill: another address than the definition's; empty: that
  bool yes = false;  // do not ask
  Format format = Format::kTable;
  std::string text = {};  // of create: in place of a file, which `file` names in messages
};
// Makes the file server, or makes it anew, and the datastore of its name; waits until it is served,
// and fills it if its file says so.
absl::StatusOr<ExitCode> FileServerCreate(Context& context, const FileServerOptions& options);
absl::StatusOr<ExitCode> FileServerList(Context& context, const FileServerOptions& options);
absl::StatusOr<ExitCode> FileServerShow(Context& context, const FileServerOptions& options);
// Brings what its folder lacks or has older; what was cut off goes on.
absl::StatusOr<ExitCode> FileServerFill(Context& context, const FileServerOptions& options);
absl::StatusOr<ExitCode> FileServerDelete(Context& context, const FileServerOptions& options);

// `tutti storage`: what lies in stores, on this machine and in jobs' results
// (docs/data/storage-command.md).
struct StorageOptions {
  std::vector<std::string> addresses;  // of cp the last is the target
  bool recursive = false;
  bool dry_run = false;
  bool yes = false;            // do not ask
  bool remove_others = false;  // of sync: what the source has not
  bool is_contained = false;   // of sync: as CopyOptions has it
  // For sign: for how long, and whether to write.
  absl::Duration lasts = absl::Hours(1);
  bool write = false;
  // For cp, mv, sync and rm another than kTable is what they have done, as one document at their
  // end (storage/storage_report.h).
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> StorageList(Context& context, const StorageOptions& options);
absl::StatusOr<ExitCode> StorageUsage(Context& context, const StorageOptions& options);
absl::StatusOr<ExitCode> StorageCat(Context& context, const StorageOptions& options);
absl::StatusOr<ExitCode> StorageRemove(Context& context, const StorageOptions& options);
absl::StatusOr<ExitCode> StorageCopy(Context& context, const StorageOptions& options);
absl::StatusOr<ExitCode> StorageMove(Context& context, const StorageOptions& options);
absl::StatusOr<ExitCode> StorageSync(Context& context, const StorageOptions& options);
// Runs a sync for other commands. `watch`, which may be empty, is called with its progress.
using CopyWatch =
    std::function<void(int64_t files, int64_t of_files, int64_t bytes, int64_t of_bytes)>;
struct SyncCounts {
  int64_t files = 0, bytes = 0;  // that the source has
  int64_t copied_files = 0;
  int64_t left_out = 0;  // what cannot be copied, which standard error has the names of
};
absl::StatusOr<SyncCounts> Sync(Context& context, const StorageOptions& options,
                                const CopyWatch& watch);
// Prints an address by which anybody can read one object, or with `write` write it, for a time.
absl::StatusOr<ExitCode> StorageSign(Context& context, const StorageOptions& options);
// Prints what opens a store for reading, as JSON (storage::Grant), to a program that called it.
absl::StatusOr<ExitCode> StorageGrant(Context& context, const StorageOptions& options);
// Returns whether the user says yes to a question; without a terminal, and without `yes`,
// InvalidArgument.
absl::StatusOr<bool> MayRemove(Context& context, bool yes, const std::string& question);

// Secrets by name; no command shows a value.
struct SecretOptions {
  std::string name;
  std::string file;  // of set: its bytes are the value; empty: standard input, or a prompt
  bool yes = false;  // of delete: do not ask
  Format format = Format::kTable;
};
absl::StatusOr<ExitCode> SecretSet(Context& context, const SecretOptions& options);
absl::StatusOr<ExitCode> SecretList(Context& context, const SecretOptions& options);
absl::StatusOr<ExitCode> SecretDelete(Context& context, const SecretOptions& options);
absl::StatusOr<ExitCode> SecretRotate(Context& context, const SecretOptions& options);

// `tutti backup` writes the service's folder into one file; `tutti restore` makes it from one.
struct BackupOptions {
  std::string file;
  bool with_results = false;  // backup only, as the next
  bool with_secret_key = false;
  bool keep_queue = false;  // restore only, as the next
  bool replace = false;
};
absl::StatusOr<ExitCode> Backup(Context& context, const BackupOptions& options);
absl::StatusOr<ExitCode> Restore(Context& context, const BackupOptions& options);

absl::StatusOr<ExitCode> RunDoctor(Context& context, Format format);

// Runs `name`, a program of tutti's found beside this one, in place of this process.
absl::StatusOr<ExitCode> RunBeside(Context& context, const std::string& name,
                                   const std::vector<std::string>& arguments);

// `tutti score`: runs tutti-score with these arguments, in which each model of the service
// (azureml:NAME@LABEL, azureml://jobs/JOB/outputs/…) has become a folder of this machine.
absl::StatusOr<ExitCode> Score(Context& context, std::vector<std::string> arguments);

// `tutti plan`: what n nodes will do. Runs tutti-bench in place of this process; where a job
// is named, with its metrics as a file.
absl::StatusOr<ExitCode> Plan(Context& context, const std::vector<std::string>& words);

// Prints the newest jobs' ids for the completion scripts, one a line; nothing when there is no
// service.
absl::StatusOr<ExitCode> CompleteJobs(Context& context);

}  // namespace tutti::client
