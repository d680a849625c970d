// What the service tells of jobs: docs/formats/rest.md. Times are RFC 3339, UTC, with microseconds,
// or empty; a text that is not known is empty.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "spec/views/view_fields.h"

namespace tutti::spec {

inline constexpr const char* kJobTypes[] = {"command", "pipeline", "sweep"};
inline constexpr const char* kPriorities[] = {"low", "normal", "high"};
inline constexpr const char* kRemovable[] = {"logs", "results"};
inline constexpr const char* kStoredLogsStates[] = {"pending", "stored", "given_up"};
inline constexpr const char* kStartIs[] = {"latest", "estimate", "plan"};
inline constexpr Form kStartIsOrNull = {.null_if_empty = true, .values = kStartIs};
inline constexpr char kStartIsText[] =
    "what expected_start is: latest: it starts by then if the jobs that run end by their time "
    "limits, no node goes away and none of a higher priority comes; estimate: jobs behind it may "
    "delay it, and others may end sooner; plan: what its cluster has planned; null: there is none";
inline constexpr Form kJobType = {.values = kJobTypes};
inline constexpr Form kJobState = {.schema = "State"};
inline constexpr Form kChildState = {.schema = "ChildState"};
inline constexpr char kWhyText[] =
    "why it is in its state, in one line; of a queued job, what it waits for now";
inline constexpr char kOriginText[] =
    "what its submitter said of where it comes from: git_commit, git_branch, git_repository, "
    "git_dirty, program, rerun_of; resumes_from, a job, by its key resume";

struct EventView {
  static constexpr char kSchema[] = "Event";
  int64_t sequence = 0;
  std::string time, state, reason;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("sequence", &EventView::sequence);
    visitor.Field("time", &EventView::time, kTime);
    visitor.Field("state", &EventView::state, kJobState);
    visitor.Field("reason", &EventView::reason);
  }
};

struct EventsView {
  static constexpr char kSchema[] = "Events";
  std::vector<EventView> events;
  std::optional<int64_t> before;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("events", &EventsView::events, kNeeded, "the oldest first");
    visitor.Field("before", &EventsView::before,
                  "`before` of the page of older ones; null: there is none");
  }
};

// One thing that went wrong in a failed job.
struct FailureView {
  static constexpr char kSchema[] = "Failure";
  std::optional<int> rank;
  std::string node, what;
  bool consequence = false;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("rank", &FailureView::rank, "null: of the node, not of a process");
    visitor.Field("node", &FailureView::node);
    visitor.Field("what", &FailureView::what);
    visitor.Field("consequence", &FailureView::consequence, "it followed from the cause");
  }
};

struct ChildView;

// How the trials of a sweep stand, and some of them.
struct TrialsView {
  static constexpr char kSchema[] = "TrialSummary";
  int64_t count = 0;
  std::map<std::string, int64_t> states;
  std::vector<ChildView> best, failed;
  std::string next;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("count", &TrialsView::count, "those that were started");
    visitor.Field("states", &TrialsView::states, "how many are in each state in which any is");
    visitor.Field("best", &TrialsView::best,
                  "the ten completed ones with the best metrics, best first");
    visitor.Field("failed", &TrialsView::failed, "the first five that failed");
    visitor.Field("next", &TrialsView::next, kNullIfEmpty,
                  "`after` of GET /v1/jobs/{job}/trials for those behind the ones in `children`; "
                  "null: these are all");
  }
};

// A step of a pipeline or a trial of a sweep.
struct ChildView {
  static constexpr char kSchema[] = "Child";
  std::string step, type = "command", id, state, reason, started, ended, reused_from;
  std::map<std::string, std::string> values;
  std::optional<double> metric;
  bool best = false;
  std::vector<ChildView> children;
  std::optional<TrialsView> trials;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("step", &ChildView::step, "its name in the parent");
    visitor.Field("type", &ChildView::type, kJobType);
    visitor.Field("id", &ChildView::id, kNullIfEmpty, "its job; null before it was started");
    visitor.Field("state", &ChildView::state, kChildState);
    visitor.Field("reason", &ChildView::reason);
    visitor.Field("started", &ChildView::started, kTimeOrNull);
    visitor.Field("ended", &ChildView::ended, kTimeOrNull);
    visitor.Field("reused_from", &ChildView::reused_from, kNullIfEmpty,
                  "the job whose results it took, since nothing has changed");
    visitor.Field("values", &ChildView::values, "of a trial: what it was given, by parameter");
    visitor.Field("metric", &ChildView::metric, "of a trial: the best that it has reported");
    visitor.Field("best", &ChildView::best, "of a trial: whether it is the best that completed");
    visitor.Field("children", &ChildView::children);
    visitor.Field("trials", &ChildView::trials);
  }
};

// A page of a sweep's trials.
struct TrialPageView {
  static constexpr char kSchema[] = "Trials";
  std::vector<ChildView> trials;
  std::string next;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("trials", &TrialPageView::trials, kNeeded);
    visitor.Field("next", &TrialPageView::next, kNullIfEmpty,
                  "`after` of the next page; null: there is none");
  }
};

// What a job asks for of each of its nodes.
struct NodeShareView {
  static constexpr char kSchema[] = "NodeShare";
  int cpus = 0;
  uint64_t memory_bytes = 0;
  int gpus = 0;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("cpus", &NodeShareView::cpus);
    visitor.Field("memory_bytes", &NodeShareView::memory_bytes, "0: that of its processors");
    visitor.Field("gpus", &NodeShareView::gpus);
  }
};

// What a job has been given of one of its nodes.
struct GivenShareView {
  static constexpr char kSchema[] = "GivenShare";
  std::string node;
  std::vector<int> cores;
  uint64_t memory_bytes = 0;
  std::vector<std::string> gpus;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("node", &GivenShareView::node);
    visitor.Field("cores", &GivenShareView::cores);
    visitor.Field("memory_bytes", &GivenShareView::memory_bytes);
    visitor.Field("gpus", &GivenShareView::gpus, "as CUDA_VISIBLE_DEVICES names them");
  }
};

struct LoggedMetricView {
  static constexpr char kSchema[] = "LoggedMetric";
  std::string name;
  std::optional<double> value;
  int64_t step = 0;
  std::string not_finite;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &LoggedMetricView::name);
    visitor.Field("value", &LoggedMetricView::value,
                  "the last one; null for what is no finite number");
    visitor.Field("step", &LoggedMetricView::step);
    visitor.Field("not_finite", &LoggedMetricView::not_finite, kNullIfEmpty,
                  "\"nan\", \"inf\" or \"-inf\", if the last one is that");
  }
};

// A run of MLflow's; it stands behind the one in which it is nested.
struct LoggedRunView {
  static constexpr char kSchema[] = "LoggedRun";
  std::string id, name, parent;
  std::vector<LoggedMetricView> metrics;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("id", &LoggedRunView::id);
    visitor.Field("name", &LoggedRunView::name, "may be empty");
    visitor.Field("parent", &LoggedRunView::parent, kNullIfEmpty,
                  "the id of the run that it is nested in, which stands before it");
    visitor.Field("metrics", &LoggedRunView::metrics);
  }
};

struct LoggedParamView {
  static constexpr char kSchema[] = "LoggedParam";
  std::string name, value;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &LoggedParamView::name);
    visitor.Field("value", &LoggedParamView::value, "its first line, cut off");
  }
};

// A model or an artifact.
struct LoggedFileView {
  static constexpr char kSchema[] = "LoggedFile";
  std::string name, path;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("name", &LoggedFileView::name);
    visitor.Field("path", &LoggedFileView::path, "of the job's files; a model's is a folder");
  }
};

// What a job has logged with MLflow.
struct LoggedView {
  static constexpr char kSchema[] = "Logged";
  std::vector<LoggedMetricView> metrics;
  std::vector<LoggedRunView> runs;
  std::vector<LoggedParamView> params;
  std::vector<LoggedFileView> models, artifacts;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("metrics", &LoggedView::metrics);
    visitor.Field("runs", &LoggedView::runs,
                  "those that logged metrics, and those in which they are nested");
    visitor.Field("params", &LoggedView::params);
    visitor.Field("models", &LoggedView::models);
    visitor.Field("artifacts", &LoggedView::artifacts,
                  "files that its runs logged, but for those within models; the first 200");
  }
};

// Files of a job that the site's retention has removed.
struct RemovedView {
  static constexpr char kSchema[] = "RemovedFiles";
  std::string kind, time;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("kind", &RemovedView::kind, Form{.values = kRemovable});
    visitor.Field("time", &RemovedView::time, kTime);
  }
};

// Where a job's logs go that are brought to a store.
struct StoredLogsView {
  static constexpr char kSchema[] = "StoredLogs";
  std::string place, state, reason, time;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("place", &StoredLogsView::place,
                  "the folder that they go to, as azureml://datastores/NAME/paths/PATH");
    visitor.Field("state", &StoredLogsView::state, Form{.values = kStoredLogsStates});
    visitor.Field("reason", &StoredLogsView::reason,
                  "of pending ones why they were not taken last, of others what is to be said; may "
                  "be empty");
    visitor.Field("time", &StoredLogsView::time, kTime, "when that was noted");
  }
};

// A run in the service's MLflow tracking.
struct TrackedRunView {
  static constexpr char kSchema[] = "TrackedRun";
  std::string id, name, experiment_id;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("id", &TrackedRunView::id);
    visitor.Field("name", &TrackedRunView::name);
    visitor.Field("experiment_id", &TrackedRunView::experiment_id);
  }
};

struct JobAheadView {
  static constexpr char kSchema[] = "JobAhead";
  std::string id, display_name;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("id", &JobAheadView::id);
    visitor.Field("display_name", &JobAheadView::display_name);
  }
};

// Where a job stands that waits for nodes of the service's machine.
struct QueuePlaceView {
  static constexpr char kSchema[] = "QueuePlace";
  int64_t place = 0;
  std::vector<JobAheadView> ahead;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("place", &QueuePlaceView::place,
                  "from 1; so many less one are ahead, steps and trials included");
    visitor.Field("ahead", &QueuePlaceView::ahead, "the first three of them");
  }
};

// What each answer that has a job tells of it.
struct BriefJobView {
  static constexpr char kSchema[] = "Job";
  std::string id, type = "command", parent, step;
  int64_t sequence = 0;
  std::string name, display_name, experiment_name, description;
  std::map<std::string, std::string> tags;
  std::string command;
  std::map<std::string, std::string> origin;
  std::string environment, state, reason, created, started, ended, compute;
  int node_count = 0, world_size = 0;
  std::string priority, expected_start, expected_start_is;
  std::optional<QueuePlaceView> queue;
  std::vector<std::string> nodes, warnings;
  std::vector<FailureView> failures;
  std::optional<NodeShareView> part;
  std::optional<std::vector<GivenShareView>> parts;
  std::string snapshot;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("id", &BriefJobView::id);
    visitor.Field("type", &BriefJobView::type, kJobType);
    visitor.Field("parent", &BriefJobView::parent, kNullIfEmpty,
                  "the pipeline or sweep whose child it is");
    visitor.Field("step", &BriefJobView::step, kNullIfEmpty, "of a child: its name there");
    visitor.Field("sequence", &BriefJobView::sequence, "order of submission, from 1, never reused");
    visitor.Field("name", &BriefJobView::name, kNullIfEmpty, "as the job file gave it");
    visitor.Field("display_name", &BriefJobView::display_name);
    visitor.Field("experiment_name", &BriefJobView::experiment_name);
    visitor.Field("description", &BriefJobView::description);
    visitor.Field("tags", &BriefJobView::tags);
    visitor.Field("command", &BriefJobView::command,
                  "what each process runs, with its expressions; empty of a pipeline");
    visitor.Field("origin", &BriefJobView::origin, kOriginText);
    visitor.Field("environment", &BriefJobView::environment,
                  "what its processes find installed: host, or the name of a Python environment");
    visitor.Field("state", &BriefJobView::state, kJobState);
    visitor.Field("reason", &BriefJobView::reason, kWhyText);
    visitor.Field("created", &BriefJobView::created, kTime);
    visitor.Field("started", &BriefJobView::started, kTimeOrNull);
    visitor.Field("ended", &BriefJobView::ended, kTimeOrNull);
    visitor.Field("compute", &BriefJobView::compute);
    visitor.Field("node_count", &BriefJobView::node_count,
                  "0 of a pipeline or a sweep: its jobs have their own");
    visitor.Field("world_size", &BriefJobView::world_size,
                  "0 of a pipeline or a sweep: its jobs have their own");
    visitor.Field("priority", &BriefJobView::priority, Form{.values = kPriorities});
    visitor.Field("expected_start", &BriefJobView::expected_start, kTimeOrNull);
    visitor.Field("expected_start_is", &BriefJobView::expected_start_is, kStartIsOrNull,
                  kStartIsText);
    visitor.Field("queue", &BriefJobView::queue,
                  "null: it does not wait, or its cluster decides and does not tell");
    visitor.Field("nodes", &BriefJobView::nodes);
    visitor.Field("warnings", &BriefJobView::warnings);
    visitor.Field("failures", &BriefJobView::failures,
                  "of a failed job: the cause first, then what else failed");
    visitor.Field("part", &BriefJobView::part, kAbsentIfNone,
                  "of a job that does not take whole nodes: what it asks for of each");
    visitor.Field("parts", &BriefJobView::parts, kAbsentIfNone,
                  "of such a job: what it has of each of its nodes, of this machine's");
    visitor.Field("snapshot", &BriefJobView::snapshot, kNullIfEmpty);
  }
};

// A job with all that is told of a single one.
struct JobView : BriefJobView {
  static constexpr char kSchema[] = "JobWithEvents";
  std::vector<EventView> events;
  std::optional<int64_t> events_before;
  std::vector<ChildView> children;
  std::optional<TrialsView> trials;
  LoggedView logged;
  std::vector<RemovedView> removed;
  std::optional<TrackedRunView> mlflow_run;
  std::optional<StoredLogsView> stored_logs;
  std::optional<uint64_t> peak_memory;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    BriefJobView::Fields(visitor);
    visitor.Field("events", &JobView::events, "the newest 200, the oldest first");
    visitor.Field("events_before", &JobView::events_before,
                  "`before` of GET /v1/jobs/{job}/events for the older ones; null: these are all");
    visitor.Field("children", &JobView::children,
                  "of a pipeline all steps, of a sweep the first 100 trials");
    visitor.Field("trials", &JobView::trials);
    visitor.Field("logged", &JobView::logged,
                  "what it has logged with MLflow into its results, once they are there");
    visitor.Field("removed", &JobView::removed,
                  "files of the job that the site's retention has removed, and when");
    visitor.Field("mlflow_run", &JobView::mlflow_run, kAbsentIfNone,
                  "the job's run in the service's MLflow tracking, if it has one");
    visitor.Field("stored_logs", &JobView::stored_logs,
                  "what became of the logs of a job whose file names a store for them; null: it "
                  "names none");
    visitor.Field("peak_memory", &JobView::peak_memory,
                  "bytes that the largest of its ranks had at once, as its node measured it each "
                  "second; null: nothing was measured");
  }

  bool ended_already() const {
    return state == "Completed" || state == "Failed" || state == "Canceled";
  }
};

struct JobsView {
  static constexpr char kSchema[] = "Jobs";
  std::vector<BriefJobView> jobs;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("jobs", &JobsView::jobs, kNeeded);
  }
};

// A job in a list of very many.
struct JobSummaryView {
  static constexpr char kSchema[] = "JobSummary";
  std::string id;
  int64_t sequence = 0;
  std::string display_name, experiment_name, command, state, reason, created, started, ended;
  int node_count = 0;
  std::string priority, expected_start, expected_start_is;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("id", &JobSummaryView::id);
    visitor.Field("sequence", &JobSummaryView::sequence,
                  "order of submission, from 1, never reused");
    visitor.Field("display_name", &JobSummaryView::display_name);
    visitor.Field("experiment_name", &JobSummaryView::experiment_name);
    visitor.Field("command", &JobSummaryView::command, "its first line, at most 200 characters");
    visitor.Field("state", &JobSummaryView::state, kJobState);
    visitor.Field("reason", &JobSummaryView::reason, kWhyText);
    visitor.Field("created", &JobSummaryView::created, kTime);
    visitor.Field("started", &JobSummaryView::started, kTimeOrNull);
    visitor.Field("ended", &JobSummaryView::ended, kTimeOrNull);
    visitor.Field("node_count", &JobSummaryView::node_count);
    visitor.Field("priority", &JobSummaryView::priority, Form{.values = kPriorities});
    visitor.Field("expected_start", &JobSummaryView::expected_start, kTimeOrNull);
    visitor.Field("expected_start_is", &JobSummaryView::expected_start_is, kStartIsOrNull,
                  kStartIsText);
  }
};

// A job that waits for nodes, in the queue of its compute.
struct QueuedJobView {
  static constexpr char kSchema[] = "QueuedJob";
  std::optional<int64_t> place;
  std::string id, parent, step, display_name, reason, created;
  int node_count = 0;
  std::string priority, expected_start, expected_start_is;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("place", &QueuedJobView::place,
                  "from 1; null: the cluster decides and does not tell");
    visitor.Field("id", &QueuedJobView::id);
    visitor.Field("parent", &QueuedJobView::parent, kNullIfEmpty,
                  "the pipeline or sweep whose child it is");
    visitor.Field("step", &QueuedJobView::step, kNullIfEmpty, "of a child: its name there");
    visitor.Field("display_name", &QueuedJobView::display_name);
    visitor.Field("reason", &QueuedJobView::reason, "what it waits for now, in one line");
    visitor.Field("created", &QueuedJobView::created, kTime);
    visitor.Field("node_count", &QueuedJobView::node_count);
    visitor.Field("priority", &QueuedJobView::priority, Form{.values = kPriorities});
    visitor.Field("expected_start", &QueuedJobView::expected_start, kTimeOrNull);
    visitor.Field("expected_start_is", &QueuedJobView::expected_start_is, kStartIsOrNull,
                  kStartIsText);
  }
};

struct QueueView {
  static constexpr char kSchema[] = "Queue";
  std::string compute;
  int64_t count = 0;
  std::vector<QueuedJobView> jobs;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("compute", &QueueView::compute);
    visitor.Field("count", &QueueView::count, "of all that wait, steps and trials included");
    visitor.Field("jobs", &QueueView::jobs, kNeeded,
                  "the first ones: by their place, or where that is not known in order of "
                  "submission");
  }
};

struct QueuesView {
  static constexpr char kSchema[] = "Queues";
  std::vector<QueueView> queues;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("queues", &QueuesView::queues, kNeeded,
                  "of each compute for which jobs wait, by name");
  }
};

struct JobSummariesView {
  static constexpr char kSchema[] = "JobSummaries";
  std::vector<JobSummaryView> jobs;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("jobs", &JobSummariesView::jobs, kNeeded);
  }
};

// What a job was submitted as, which may be submitted again.
struct SubmissionView {
  static constexpr char kSchema[] = "JobSubmission";
  std::string file, text, base_directory, snapshot;
  std::map<std::string, std::string> snapshots, origin;
  std::string former;
  JsonText job;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("file", &SubmissionView::file, "name of the job file, for messages");
    visitor.Field("text", &SubmissionView::text, "its content, YAML");
    visitor.Field("base_directory", &SubmissionView::base_directory, kNullIfEmpty,
                  "absolute; null of a job that an older service took");
    visitor.Field("snapshot", &SubmissionView::snapshot, kNullIfEmpty);
    visitor.Field("snapshots", &SubmissionView::snapshots,
                  "the snapshot of each code folder that it and its jobs name");
    visitor.Field("origin", &SubmissionView::origin, kOriginText);
    visitor.Field("former", &SubmissionView::former, kNullIfEmpty,
                  "the newest earlier job of the same script or job file, of the 500 before it; "
                  "null, too, where it is not asked for");
    visitor.Field("job", &SubmissionView::job,
                  "the job as it was read: all keys with their defaults");
  }
};

// What is to be said of a job that is created, or would be.
struct WarningsView {
  static constexpr char kSchema[] = "Warnings";
  std::vector<std::string> warnings;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("warnings", &WarningsView::warnings);
  }
};

// A file of a job's results or logs.
struct FileView {
  static constexpr char kSchema[] = "File";
  std::string path;
  uint64_t bytes = 0;
  // The client's own, which is not told: the job runs, so by now it may be another one, or gone.
  bool changes = false;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("path", &FileView::path);
    visitor.Field("bytes", &FileView::bytes);
  }
};

struct FilesView {
  static constexpr char kSchema[] = "Files";
  std::vector<FileView> files;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("files", &FilesView::files, kNeeded);
  }
};

// A file of a job's code.
struct CodeFileView {
  static constexpr char kSchema[] = "CodeFile";
  std::string path;
  uint64_t bytes = 0;
  std::optional<std::string> text;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("path", &CodeFileView::path);
    visitor.Field("bytes", &CodeFileView::bytes);
    visitor.Field("text", &CodeFileView::text,
                  "null of what is no UTF-8 text or of more than 256 KiB, and of what goes beyond "
                  "8 MiB in all");
  }
};

struct CodeView {
  static constexpr char kSchema[] = "Code";
  std::string snapshot;
  std::vector<CodeFileView> files;
  uint64_t left_out = 0;

  template <class Visitor>
  static void Fields(Visitor& visitor) {
    visitor.Field("snapshot", &CodeView::snapshot);
    visitor.Field("files", &CodeView::files, "by path, 2,000 at most; without links and folders");
    visitor.Field("left_out", &CodeView::left_out,
                  "how many files are not listed; all that lie beyond the first GiB count as one");
  }
};

}  // namespace tutti::spec
