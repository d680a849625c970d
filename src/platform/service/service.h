// Moves jobs through their states: takes them in, has the scheduler decide, has the
// engine start and stop launchers, listens to what launchers report, and tells every watcher.
//
// Invariant: what is not in the store has not happened. A transition is written before its effect
// (Provisioning, with nodes, port and allocation id, before Engine::Start) and every effect can be
// repeated; so kill -9 at any instant loses nothing and runs nothing twice. What the service keeps
// in memory is rebuilt by Open from the store, the log folders and Engine::Observe.
//
//   Queued -> Provisioning -> Preparing -> Starting -> Running -> Finalizing -> Completed
//             nodes chosen    a launcher   all         all        all processes ended, or one
//                             has taken    prepared,   processes  failed, or cancel: the rest are
//                             the plan     "go" given  run        being stopped, results sent
//
// Thread-safe. One loop thread (Run) makes all decisions and alone calls the engine, never under
// the lock; calls from outside change state only through the store and wake the loop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "platform/engine/engine.h"
#include "platform/service/diagnosis/diagnosis.h"
#include "platform/service/jobs/free_port.h"
#include "platform/service/logs/job_logs.h"
#include "platform/service/results/job_files.h"
#include "platform/service/results/snapshots.h"
#include "platform/store/store.h"

namespace tutti::service {

// Where jobs run, by their compute. "local" is always there; tutti's own scheduler places its jobs.
// All others schedule for themselves: a job is handed over when it comes in, stays Queued while it
// waits there, and is placed when the engine says on which nodes.
struct Engines {
  Engines(engine::Engine* local) : local(local) {}  // NOLINT: most services have nothing else
  engine::Engine* local;
  std::map<std::string, engine::Engine*, std::less<>> clusters;
  std::map<std::string, std::string> broken;  // computes that have no engine now, and why
};

struct ServiceOptions {
  std::filesystem::path directory;      // logs, outputs and snapshots lie below it
  std::filesystem::path launcher_file;  // spec::LaunchPlan::service_file of every plan
  absl::Duration observe_interval = absl::Milliseconds(200);
  absl::Duration stop_grace = absl::Seconds(10);    // from SIGTERM to SIGKILL
  absl::Duration report_limit = absl::Minutes(2);   // for the first word of a launcher
  absl::Duration silence_limit = absl::Minutes(2);  // of a launcher that was told to stop
  uint64_t log_limit = uint64_t{1} << 30;           // bytes of a job's output that are kept
  int drain_attempts = 3;                           // to recover the spool of a launcher that died
  std::string boot_id;                              // of this machine; empty: base::BootId
  // A port that is free on that numeric address, `preferred` if it can be.
  std::function<FreePort(const std::string& address, int preferred)>
      find_port;                                        // empty: FindFreePort
  std::function<std::string(size_t bytes)> random_hex;  // empty: base::RandomHex
};

struct Submission {
  std::string file = "job.yml";  // name of the job file, for messages
  std::string text;              // its content
  std::filesystem::path base_directory;
  std::string snapshot;  // "sha256:…" or empty
  // Of a pipeline or a sweep: of each `code` that its jobs name, as the reader gives it.
  std::map<std::string, std::string> snapshots;
};

// A job as users see it.
struct JobStatus {
  store::JobRecord record;
  std::string reason;  // why it is in its state; of a queued one, what it waits for now
  std::optional<absl::Time> expected_start;
  std::vector<std::string> nodes;
  std::vector<Failure> failures;
};

// A job in a list of many: what a table shows of it.
struct JobSummary {
  std::string id;
  int64_t sequence = 0;
  std::string display_name;
  std::string experiment_name;
  store::JobState state = store::JobState::kQueued;
  std::string reason;  // as in JobStatus
  absl::Time created;
  std::optional<absl::Time> started;
  std::optional<absl::Time> ended;
  int node_count = 1;  // 0 of a pipeline or a sweep: its jobs have their own
  spec::Priority priority = spec::Priority::kNormal;
  std::optional<absl::Time> expected_start;
};

// A child of a pipeline or a sweep.
struct ChildStatus {
  std::string step;
  spec::JobKind kind = spec::JobKind::kCommand;
  std::optional<JobStatus> job;  // nothing before it was started
  bool never = false;            // nor will it be
  std::string reused_from;       // the job whose results it took; empty: it ran
  // Of a trial: what it was given, by parameter; the best that it reported; whether it is the best.
  std::vector<std::pair<std::string, std::string>> values;
  std::optional<double> metric;
  bool best = false;
  std::vector<ChildStatus> children;
};

struct NodeStatus {
  std::string compute;
  engine::Node node;
  std::string job;  // that holds it, or one of those of this service on it; empty: none
};

struct NodeList {
  std::vector<NodeStatus> nodes;
  std::vector<std::string> warnings;  // of computes that cannot tell theirs now
};

// One thing that a follower is told.
struct FollowItem {
  std::string cursor;  // what to send to get what comes after this item
  absl::Time time;
  std::optional<store::Event> event;  // a state change; else output:
  int rank = 0;
  Stream stream = Stream::kStdout;
  std::string text;      // without its newline
  bool partial = false;  // no newline came: the end of the output, or a piece of a very long line
};

struct FollowResult {
  std::vector<FollowItem> items;
  bool ended = false;  // the job has ended and these items are the last
};

class Service {
 public:
  // Rebuilds everything; starts and stops nothing yet. `store`, engines and `clock` outlive it.
  static absl::StatusOr<std::unique_ptr<Service>> Open(ServiceOptions options, store::Store* store,
                                                       Engines engines, const base::Clock* clock);
  // Jobs go on without the service.
  virtual ~Service() = default;

  // Starts the loop thread. Without it, Tick is the caller's to call.
  virtual void Run() = 0;
  // Observes the engine, takes every step that can be taken now, and carries out its effects.
  virtual void Tick() = 0;
  // Ends the loop thread and every wait. Called by the destructor as well.
  virtual void Stop() = 0;

  // --- For users. NotFound if there is no such job.

  // InvalidArgument names every fault of the job file; AlreadyExists if the name is taken;
  // ResourceExhausted if the disk has no room for what the job will have to write down. What has
  // been answered OK survives everything.
  virtual absl::StatusOr<JobStatus> Submit(const Submission& submission) = 0;
  // What Submit would say of it, with nothing taken in; its code need not have been sent. The
  // warnings, if it would be taken.
  virtual absl::StatusOr<std::vector<std::string>> Check(const Submission& submission) = 0;
  virtual absl::StatusOr<JobStatus> GetJob(absl::string_view id) = 0;
  virtual absl::StatusOr<std::vector<store::Event>> EventsOf(absl::string_view id) = 0;
  virtual absl::StatusOr<std::vector<JobStatus>> ListJobs(const store::JobFilter& filter) = 0;
  // The same jobs in short; ten thousand queued ones take some milliseconds.
  virtual absl::StatusOr<std::vector<JobSummary>> ListSummaries(const store::JobFilter& filter) = 0;
  // A pipeline's steps in the order of its file, a sweep's trials in theirs; none of another job.
  virtual absl::StatusOr<std::vector<ChildStatus>> ChildrenOf(absl::string_view id) = 0;
  // In any state; returns once the request is on disk. A job that has ended, or that is ending by
  // its own failure, keeps that end.
  virtual absl::StatusOr<JobStatus> Cancel(absl::string_view id) = 0;
  // With logs, outputs and children. FailedPrecondition if it has not ended, or is a child itself.
  virtual absl::Status Delete(absl::string_view id) = 0;
  // What comes after `cursor` ("" for the beginning), in the order in which it arrived; waits for
  // the first item until the deadline, then returns none. At most about a megabyte at a time.
  // InvalidArgument for a cursor that no item of this job carried.
  virtual absl::StatusOr<FollowResult> Follow(absl::string_view id, absl::string_view cursor,
                                              base::Deadline deadline) = 0;
  // Waits for clusters up to their engines' limits.
  virtual NodeList ListNodes() = 0;
  // What is broken now and goes on without: a line each. Empty: nothing.
  virtual std::vector<std::string> Troubles() = 0;

  // --- For launchers (docs/formats/launch-plan.md). Aborted if the allocation is not known or is
  // over: the launcher is to end. InvalidArgument for a node, rank or stream that it does not have.

  struct Acknowledgement {
    int64_t acknowledged = 0;
    bool go = false;
  };
  virtual absl::StatusOr<Acknowledgement> ReportEvents(absl::string_view allocation, int node,
                                                       int64_t first,
                                                       const std::vector<std::string>& lines) = 0;
  // Waits until the processes may start, or the deadline. False also once the job is being stopped.
  virtual absl::StatusOr<bool> WaitForGo(absl::string_view allocation, int node,
                                         base::Deadline deadline) = 0;
  // Returns the number of bytes that are kept now; see JobLogs::Append.
  virtual absl::StatusOr<uint64_t> AppendOutput(absl::string_view allocation, int node, int rank,
                                                Stream stream, uint64_t offset,
                                                absl::string_view bytes) = 0;
  // Where a result file of this allocation goes; commit it with IncomingFile::Commit. It must not
  // outlive the service.
  virtual absl::StatusOr<std::unique_ptr<IncomingFile>> ReceiveFile(absl::string_view allocation,
                                                                    int node,
                                                                    absl::string_view path) = 0;

  // --- Folders that hold no state of their own; thread-safe.
  virtual Snapshots& snapshots() = 0;
  virtual const JobFiles& files() const = 0;
};

}  // namespace tutti::service
