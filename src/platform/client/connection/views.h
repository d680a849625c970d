// Parses the service's answers into values. The readers take any text: what is missing or of
// another type becomes empty or zero, so that a newer service's answers still show; only a text
// that is not the document at all is an error (Internal).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tutti::client {

struct EventView {
  std::string time;  // RFC 3339
  std::string state;
  std::string reason;
};

// One thing that went wrong in a failed job.
struct FailureView {
  int rank = -1;  // -1: the node's own
  std::string node, what;
  bool consequence = false;  // it followed from the first
};

struct ChildView;

// How the trials of a sweep stand, and some of them.
struct TrialsView {
  int64_t count = 0;
  std::vector<std::pair<std::string, int64_t>> states;  // how many are in each, by name
  std::vector<ChildView> best, failed;
  std::string next;  // cursor of those behind the listed ones; empty: all are listed
};

// A step of a pipeline or a trial of a sweep.
struct ChildView {
  std::string step, type;
  std::string id;             // empty before it was started
  std::string state, reason;  // also "Waiting", and "NotStarted" if it never will
  std::string started, ended;
  std::string reused_from;
  std::vector<std::string> values;  // of a trial: "learning_rate=0.1"
  std::optional<double> metric;
  bool best = false;
  std::vector<ChildView> children;
  TrialsView trials;  // of a sweep
};

// What a job has logged with MLflow.
struct LoggedMetric {
  std::string name;
  std::optional<double> value;  // nothing: no finite number
};

// A run of MLflow's, behind the one that it is nested in.
struct LoggedRun {
  std::string id, name, parent;  // `parent`: an id, or empty
  std::vector<LoggedMetric> metrics;
};

struct LoggedParam {
  std::string name, value;
};

struct LoggedModel {
  std::string name, path;
};

// Files that the site's retention has removed.
struct RemovedView {
  std::string kind;  // "logs", "results"
  std::string time;  // RFC 3339
};

// Where a job's logs go that are brought to a store.
struct StoredLogsView {
  std::string place;  // azureml://datastores/NAME/paths/PATH
  std::string state;  // "pending", "stored", "given_up"
  std::string reason;
};

// A part of a node.
struct PartView {
  std::string node;  // of one that a job has
  int cpus = 0;
  std::vector<int> cores;  // likewise
  uint64_t memory_bytes = 0;
  int gpu_count = 0;
  std::vector<std::string> gpus;
};

struct JobView {
  std::string id;
  std::string type = "command";  // or pipeline, sweep
  std::string parent;            // of a child
  int64_t sequence = 0;
  std::string display_name, experiment_name, description, environment, command;
  std::vector<std::string> tags;              // "owner=me"
  std::map<std::string, std::string> origin;  // "git_commit", "program", …
  std::string state, reason;
  std::string created, started, ended;  // RFC 3339, or empty
  std::string compute, priority;
  int node_count = 0, world_size = 0;
  std::string expected_start;  // RFC 3339, or empty
  std::vector<std::string> nodes, warnings;
  std::optional<PartView> part;       // of each node, that it asks for
  std::vector<PartView> parts;        // that it has
  std::vector<FailureView> failures;  // of a failed job, the cause first
  std::vector<EventView> events;      // only of a single job: the newest
  bool has_older_events = false;
  std::vector<ChildView> children;    // only of a single job; of a sweep the first
  TrialsView trials;                  // only of a single job, which is a sweep
  std::vector<LoggedMetric> metrics;  // only of a single job
  std::vector<LoggedRun> runs;        // those that `metrics` are of, and those within them
  std::vector<LoggedParam> params;
  std::vector<LoggedModel> models;            // only of a single job
  std::vector<std::string> artifacts;         // names; only of a single job
  std::vector<RemovedView> removed;           // only of a single job
  std::optional<StoredLogsView> stored_logs;  // likewise
  std::string mlflow_run;                     // the id of its run in MLflow's tracking; or empty

  bool ended_already() const;  // Completed, Failed or Canceled
};

struct NodeView {
  std::string name, compute, address, state, reason, job, cordoned_by;
  std::vector<int> cores;
  uint64_t memory_bytes = 0;
  std::vector<std::string> gpus, jobs;
  PartView used;
};

struct NodesView {
  std::vector<NodeView> nodes;
  std::vector<std::string> warnings;
};

// One thing that was removed, or would be.
struct PrunedView {
  std::string kind, name, last_used, why;
  std::string place = "";  // where it lies, if not on the service's machine
  uint64_t bytes = 0;
};

// What was found of one thing of a node.
struct NodeCheckView {
  std::string name, outcome, detail;  // outcome: ok, ill or unknown
};

struct SecretView {
  std::string name, created, set;  // RFC 3339
  bool readable = false;
  std::vector<std::string> waiting_jobs;
};

struct FileView {
  std::string path;
  uint64_t bytes = 0;
  bool changes = false;  // of a job that runs: it may be another one, or gone, by now
};

// One line of a job's stream (docs/formats/rest.md).
struct FollowLine {
  enum class Kind { kState, kOutput } kind = Kind::kOutput;
  std::string cursor;
  std::string time;
  std::string state, reason;  // kState
  int rank = 0;               // kOutput
  std::string stream, text;
  bool partial = false;  // kOutput: no newline came; a piece of a line
};

absl::StatusOr<JobView> ParseJob(absl::string_view json);
absl::StatusOr<std::vector<JobView>> ParseJobs(absl::string_view json);
absl::StatusOr<NodesView> ParseNodes(absl::string_view json);
absl::StatusOr<std::vector<NodeCheckView>> ParseNodeChecks(absl::string_view json);
// Returns the warnings in the answer to a job's creation or check.
absl::StatusOr<std::vector<std::string>> ParseWarnings(absl::string_view json);
absl::StatusOr<std::vector<std::string>> ParseProblems(absl::string_view json);
absl::StatusOr<std::vector<PrunedView>> ParsePruned(absl::string_view json);
struct ModelView {
  std::string name, description, latest, created;
  int64_t versions = 0;
  bool archived = false;
};

struct ModelVersionView {
  std::string name, version, type, description, stage, created, digest, file;
  std::vector<std::string> aliases;
  std::vector<std::pair<std::string, std::string>> tags, properties;
  bool archived = false;
  int64_t file_count = 0;
  uint64_t bytes = 0;
  // What it was made of, a line each: "job  train-1"; of one that no job has left: none.
  std::vector<std::pair<std::string, std::string>> lineage;
  std::vector<FileView> files;  // not in lists
};

absl::StatusOr<std::vector<ModelView>> ParseModels(absl::string_view json, std::string& after);
absl::StatusOr<ModelVersionView> ParseModelVersion(absl::string_view json);
absl::StatusOr<std::vector<ModelVersionView>> ParseModelVersions(absl::string_view json,
                                                                 int64_t& before);

// Returns what registered models keep, of the answer to pruning.
struct KeptModelsView {
  int64_t versions = 0;
  uint64_t bytes = 0;
};
KeptModelsView ParseKeptModels(absl::string_view json);
absl::StatusOr<std::vector<SecretView>> ParseSecrets(absl::string_view json);
// Reads the failed jobs in the answer to a secret's deletion.
absl::StatusOr<std::vector<std::string>> ParseFailedJobs(absl::string_view json);
absl::StatusOr<std::vector<FileView>> ParseFiles(absl::string_view json);
// Parses a line; nullopt for a kind of line that this client does not know.
absl::StatusOr<std::optional<FollowLine>> ParseFollowLine(absl::string_view json);
// Returns the version in the answer to GET /v1/health; "" if there is none.
std::string ParseVersion(absl::string_view json);

// What a job is submitted as, or was.
struct SubmissionView {
  std::string file, text;      // the job file's name, for messages, and its content
  std::string base_directory;  // empty: an older service took it, and does not know
  std::string snapshot;        // of its code; empty: none
  std::map<std::string, std::string> snapshots;  // of a pipeline or a sweep: by code
  std::map<std::string, std::string> origin;
  // Of one that was taken: the last job of the same script before it, or empty; and the job as it
  // was read, as JSON. An older service tells neither.
  std::string former, job;
};
// Returns the body of POST /v1/jobs. `nonce` empty: none.
std::string CreateJobBody(const SubmissionView& submission, absl::string_view nonce = "");
absl::StatusOr<SubmissionView> ParseSubmission(absl::string_view json);

}  // namespace tutti::client
