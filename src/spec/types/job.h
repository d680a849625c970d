// JobSpec describes a job: every reader of a job file fills it, and every other room works with it.
// Plain values; a JobSpec that came out of ReadJobFile has passed every check that needs no
// machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "spec/types/data_place.h"
#include "spec/types/job_distribution.h"
#include "spec/types/slurm_settings.h"
#include "spec/types/sweep.h"

namespace tutti::spec {

// Where something is written, for errors. The file is known until the job has been submitted.
struct SourceLocation {
  std::string file;  // as errors name it
  int line = 0;      // 0: nowhere
};

struct Input {
  // uri_folder, uri_file, mltable, mlflow_model, custom_model, triton_model: by path;
  // string, number, integer, boolean: by literal.
  std::string type = "uri_folder";
  // Absolute once the file has been read, or the http(s) address of a file; empty for a literal and
  // for what has a place.
  std::string path;
  std::string mode = "ro_mount";  // ro_mount, download, direct; of an mltable also eval_…
  std::string literal;            // as it is put into the command
  SourceLocation location;        // of the value: a step may give it to what a component has
  bool absent = false;            // optional, and no value was given
  std::string job_folder;         // of an earlier job, whose result it is; for errors
  // It was named by this, a data asset or a registered model with its version, "azureml:net:3",
  // whatever label stands in the file. Empty: it was named by its path or address.
  std::string asset;
  std::optional<DataPlace> place;  // in a store, from which each node fetches it
  // An input of mode eval_mount or eval_download has neither path nor place once its table was
  // read. What the table's paths name are inputs beside it, whose names no job file has
  // ("t.paths[0]") and whose mode is ro_mount or download; each says:
  std::string table;  // the input's name; of all other inputs empty
  // Says which files below a folder of this machine are meant, also without a table; empty: all.
  std::string pattern;
  // The file's path in the folder that the job gets, or the folder that the files lie below there,
  // as they lie below the place's folder.
  std::string placed;
};

// Returns whether the job gets the files that the input's table names, and not its folder.
inline bool IsEvaluated(const Input& input) {
  return input.mode == "eval_mount" || input.mode == "eval_download";
}

// Returns which wildcards its pattern has: MLTable's where a table says it, else those of
// addresses.
inline base::Wildcards WildcardsOf(const Input& input) {
  return input.table.empty() ? base::Wildcards::kPlain : base::Wildcards::kClasses;
}

struct Output {
  std::string type = "uri_folder";  // uri_folder, uri_file, mltable, and the models' types
  std::string mode = "rw_mount";
  std::string file;  // of a uri_file: its name in the output's folder, with kOwnName as `place`
  // In a store, to which each node brings what it has of it; kOwnName in its path stands for the
  // job's name. Of a uri_file with the file's name.
  std::optional<DataPlace> place;
  SourceLocation location;  // of the path, for errors
};

// One package of a Python environment in pip's words, and where that is written.
struct Requirement {
  std::string text;
  std::string location;  // "conda.yaml:7", for errors
};

// A program that a file has from conda. It is not installed here: the nodes have it, or the image.
struct Program {
  std::string name;      // "g++"
  std::string package;   // as the file calls it: "gxx_linux-64"
  std::string location;  // "conda.yaml:7", for errors
};

// The image whose containers a job's processes run in; an empty one says that they run in none.
struct Image {
  std::string reference;   // as podman names it; empty where it is built
  std::string context;     // of a build: the folder that is sent, absolute
  std::string dockerfile;  // of a build: its path in `context`
  std::string location;    // "job.yml:4", for errors
  // For a build, what its Dockerfile needs that can only be had by building ("Dockerfile:6: RUN
  // apt-get"); empty: nothing.
  std::string needed_by;
  bool empty() const { return reference.empty() && context.empty(); }
};

// A Dockerfile copies it from its folder; the check that it is there needs this.
struct CopiedFile {
  std::string path;    // as written; may have wildcards
  std::string folder;  // of the build, absolute
  std::string word;    // COPY or ADD
  SourceLocation location;
};

// Describes what the processes of a job find installed: what the machine has, a Python environment
// that holds these packages and nothing else, made once and shared by its content, or an image.
struct Environment {
  std::string name = "host";  // as people call it
  bool is_host = true;        // the machine's own: it has no packages but horovod, or none
  std::string python;         // the version that is wanted, as "3.8"; empty: any
  std::vector<Requirement> packages;
  std::vector<std::string> options;  // of pip: "--extra-index-url=https://…"
  // The builds of PyTorch that its files ask for: "cpu", or "gpu"; empty: the node's GPUs decide.
  std::string torch;
  std::vector<Program> programs;
  // Its files set these for the job's processes, below the job's own environment_variables.
  std::map<std::string, std::string> variables;
  Image image;                     // if it is not empty: it, with the packages installed in it
  std::string python_place;        // "conda.yaml:3": where `python` is; until the job is submitted
  std::string place;               // "job.yml:4": where the job names it; as long
  std::vector<CopiedFile> copied;  // known only where the file was read
  bool as_of_pins = true;          // what is not pinned may be as of the day of the pins
  std::string newest_day;  // "2022-07-30": nothing that was uploaded later; found by the launcher
};

// Where a job file asks for GPUs.
struct GpuDemand {
  std::string what;  // "--gpus=all (docker_args)", "instance_type Standard_NC6"
  SourceLocation location;
  bool is_strict = false;  // asked for by name; else by a kind of machine
  size_t count = 1;        // on each node, at least
};

// Says what a job asks of each of its nodes, where it does not take them whole
// (resources.properties.tutti).
struct NodeShare {
  int cpus = 0;              // processors; 0: one for each of its processes on a node
  int64_t memory_bytes = 0;  // 0: that of its processors, as the node has it
  int gpus = 0;

  bool operator==(const NodeShare&) const = default;
};

enum class Priority { kLow, kNormal, kHigh };

// A pipeline's children are its steps, a sweep's are its trials; both run nothing themselves.
enum class JobKind { kCommand, kPipeline, kSweep };

struct Step;

struct JobSpec {
  JobKind kind = JobKind::kCommand;
  std::string file_name;  // of the job file, as errors name it
  std::string directory;  // absolute; relative paths of the file count from it; empty: not known
  // Its submitter says where it comes from: "git_commit", "git_branch", "git_repository",
  // "git_dirty" ("true"), "program" (a script's command without its arguments), "rerun_of" (a job);
  // the service adds "resumes_from" (a job).
  std::map<std::string, std::string> origin;
  std::string name;  // letters, digits, "-" and "_"; empty: the service gives one
  std::string display_name;
  std::string experiment_name;
  std::string description;
  std::map<std::string, std::string> tags;
  std::string command;   // with ${{…}} expressions unexpanded; never empty
  int command_line = 0;  // where "command" is in the job file
  // While a file is read: what the command needs was refused, such as its code. What it runs is not
  // known then.
  bool command_in_doubt = false;
  std::string code;  // folder or file, absolute; or a git address (code.h); empty: no code
  int code_line = 0;
  // A component's further files and folders, as absolute paths; each is put beside the code under
  // its own name.
  std::vector<std::string> additional_includes;
  int includes_line = 0;
  Environment environment;
  std::map<std::string, std::string> environment_variables;
  // Where each of those is written, and the key "environment"; while a file is read.
  std::map<std::string, SourceLocation> variable_locations;
  SourceLocation environment_location;
  std::string compute;  // "local"; empty while it is read: it was refused
  std::map<std::string, Input> inputs;
  std::map<std::string, Output> outputs;
  Distribution distribution;
  int instance_count = 1;
  SourceLocation instance_count_location;
  std::optional<NodeShare> share;  // of each node; none: it takes them whole
  SourceLocation share_location;
  // Its processes are given these of the service's secrets: a variable's name and the secret whose
  // value it has; or, of a file with the value, whose path it has.
  std::map<std::string, std::string> secret_variables, secret_files;
  SourceLocation secrets_location;
  // In a store: the folder in which the service puts a folder of the job's name with its logs, once
  // it has ended; kOwnName as in Output::place. None: they stay with the job alone.
  std::optional<DataPlace> logs_place;
  SourceLocation logs_location;
  // Its inputs that are to be mounted on the nodes, where these may, in place of a copy in the
  // nodes' cache: folders of stores, of mode ro_mount.
  std::vector<std::string> mounts;
  SourceLocation mounts_location;
  // Options of `podman run` that the job asks for, as "--cap-add=SYS_PTRACE"; for an image only.
  std::vector<std::string> container_options;
  std::vector<GpuDemand> gpu_demands;                 // known until the job has been submitted
  absl::Duration timeout = absl::InfiniteDuration();  // limits.timeout: wall time from Running on
  Priority priority = Priority::kNormal;              // queue_settings.priority
  // retry_settings.max_retries: how often it is begun again after a node of it was lost.
  int max_retries = 0;
  std::string resume;  // an earlier job, with whose outputs this one begins; empty: none
  SourceLocation resume_location;
  SlurmSettings slurm;  // resources.properties.slurm: over its compute's, if that is of type slurm
  // Whether an earlier job of the same content may stand for it (as a pipeline's step).
  bool reusable = true;

  // The members of a pipeline. Its inputs are what steps may be bound to.
  std::vector<Step> steps;  // in the order of the file; their needs have no circle
  bool continue_on_step_failure = false;
  std::string first_step, last_step;  // settings.on_init and on_finalize; empty: none

  // With this the job is a sweep. Command, code, environment, outputs and scale then describe the
  // trials; each parameter of the search space is an input, whose literal a trial gives.
  std::optional<Sweep> sweep;

  // Returns what its snapshot is made of: equal texts are equal snapshots. Empty: it has none.
  std::string AllCode() const {
    std::string all = code;
    for (const std::string& path : additional_includes) all += "\n" + path;
    return all;
  }

  // Returns the number of processes over all nodes.
  int WorldSize() const { return WorldSizeOf(distribution, instance_count); }

  // Returns the number of processes on the node that has the most.
  int ProcessesOfANode() const { return (WorldSize() + instance_count - 1) / instance_count; }

  // Returns how many of the last ranks serve the chief, rank 0, and never end by themselves.
  int ServerCount() const { return ServerCountOf(distribution, instance_count); }
};

// One step of a pipeline: a job, but for what only its siblings' results can tell.
struct Step {
  std::string name;  // letters, digits, "-" and "_"
  JobSpec job;
  std::string snapshot;  // "sha256:…" of its code; empty: none, or its own steps have theirs
  // Inputs that are bound: to "inputs.X", an input of the pipeline, or "jobs.S.outputs.O".
  std::map<std::string, std::string> inputs_from;
  std::map<std::string, std::string> outputs_to;  // its outputs that are the pipeline's
};

}  // namespace tutti::spec
