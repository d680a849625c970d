// Store is the durable state of a service: jobs, their events, and what launchers reported. It is
// one SQLite file in WAL mode.
//
// The events are the truth: a job's state is what its last event says; the jobs table holds only
// what never changes, and job_states what follows from the events, written with each. What a call
// has returned OK for is on the disk and survives kill -9 and power loss (synchronous=FULL), but
// for what its caller says need not survive the latter; a call that failed changed nothing. An
// event is appended only after the one that its writer saw last, so that two writers cannot both
// move a job. No number of an event is given twice, also not one that a power loss took.
//
// Thread-safe. Errors: NotFound, AlreadyExists, Aborted (someone else was faster: read again),
// FailedPrecondition (not a step that a job can take), ResourceExhausted (disk full: nothing was
// changed; works again once there is space), DataLoss (file is damaged), Unavailable (locked by
// another program for longer than the busy timeout, or the device fails).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/store/job_state.h"
#include "platform/store/writes.h"
#include "spec/types/job.h"

namespace tutti::store {

// Holds what is fixed when a job is accepted.
struct Job {
  std::string id;
  int64_t sequence = 0;  // order of submission, from 1, never reused; given by InsertJob
  absl::Time created;    // microseconds are kept
  spec::JobSpec spec;
  std::string file_text;  // the job file as it came
  std::string snapshot;   // "sha256:…" of the code archive; empty: none
  std::string job_token;  // secret
  std::string nonce;      // its submitter's name for the submission; empty: none
  std::vector<std::string> warnings;
  // For a child, the job whose child it is, the name of its step ("trial-3" of a sweep), and the
  // hash of all that its results follow from; an empty hash says that they are not to be reused.
  std::string parent;
  std::string step;
  std::string step_key;
  // A sweep's trial was given these, one for each parameter. Only TrialsOf reads them.
  std::optional<std::vector<std::string>> trial_values;
};

struct Event {
  int64_t sequence = 0;  // over all jobs, ascending; given by the store
  absl::Time time;       // microseconds are kept; not before that of the job's last event
  JobState state = JobState::kQueued;
  std::string reason;         // one line, in plain words
  std::string detail = "{}";  // a JSON object for programs: allocation, nodes, exit codes, …
};

struct JobRecord {
  Job job;
  Event last;                         // its state says how the job is now
  std::optional<absl::Time> started;  // first Running event since it was last Queued
  std::optional<absl::Time> ended() const {
    return IsEnd(last.state) ? std::optional(last.time) : std::nullopt;
  }
};

struct JobFilter {
  std::vector<JobState> states;  // empty: all
  int limit = 100;               // at least 1
  int64_t before = 0;            // only jobs with a smaller sequence; 0: from the newest on
  std::string parent;            // only its children; empty: only jobs that have no parent
};

// Who reads. kLockHolder: who holds a lock that many wait for, one at a time. There is a connection
// for him alone, so that he waits for no other reader.
enum class Reader { kAnyone, kLockHolder };

// A sweep's trial.
struct TrialRecord {
  JobRecord job;                    // without its spec and its file, which take most of the time
  std::vector<std::string> values;  // that it was given, one for each parameter of its sweep
  // The best that it has reported, negated where the sweep maximizes, so that less is better.
  // Nothing: it has reported none, or not all of it was read yet.
  std::optional<double> cost;
  bool known = false;  // that was noted by NoteTrials
};

struct TrialFilter {
  // kNumber orders them by number. kBest takes those that have completed and reported the metric,
  // the best first, equal ones in order of submission.
  enum class Order { kNumber, kBest };

  std::string sweep;             // its id
  std::vector<JobState> states;  // empty: all; of no meaning for kBest
  Order order = Order::kNumber;
  int limit = 100;    // at least 1
  int64_t after = 0;  // only those behind this one in that order: its sequence
  double after_cost = -std::numeric_limits<double>::infinity();  // and its cost, for kBest
};

// Holds what a trial that has ended has reported, all of which was read.
struct TrialOutcome {
  std::string job;
  std::optional<double> cost;  // as in TrialRecord
};

// A trial of a sweep that has ended, of which nobody has noted what it has reported.
struct UnreadTrial {
  std::string job, sweep;  // their ids
  int64_t sequence = 0;    // its own
};

// Who has cordoned a node, and so who takes that back: a user; a check, once it passes again; or
// the service for failures of jobs, which a user takes back.
enum class CordonAuthor { kUser, kCheck, kJobs };
absl::string_view Name(CordonAuthor author);  // "user", "check", "jobs"

// A node of this machine that gets no jobs.
struct Cordon {
  std::string node;
  std::string reason;  // of who said so; never empty
  absl::Time time;
  CordonAuthor author = CordonAuthor::kUser;
};

// The value of a secret, as the service has sealed it: the store can read it as little as anyone.
struct SealedSecret {
  std::string name;
  std::string key;     // which of the service's keys; no part of it
  std::string sealed;  // any bytes
  absl::Time created;  // when a value was first given under that name; microseconds are kept
  absl::Time set;      // when this one was
};

// Files of an ended job that are not there any more, though the job is.
struct RemovedFiles {
  std::string kind;  // "logs", "results"
  absl::Time time;   // microseconds are kept
};

// Says what became of the logs of a job whose file names a store for them. A job has such a note
// from its insertion on.
struct LogsNote {
  enum class State { kPending, kStored, kGivenUp };
  State state = State::kPending;
  std::string reason;  // one line; of kPending why they were not taken last, "" if nobody has tried
  absl::Time time;     // when that was noted; microseconds are kept

  bool operator==(const LogsNote&) const = default;
};
absl::string_view Name(LogsNote::State state);  // "pending", "stored", "given_up"

struct EndedJob {
  std::string id;
  int64_t sequence = 0;
  absl::Time ended;
};

struct StoreOptions {
  absl::Duration busy_timeout = absl::Seconds(5);
  // For crash tests: called under the store's lock before (1, 3, …) and after (2, 4, …) each
  // commit; the number counts all calls since Open.
  std::function<void(int64_t)> on_commit;
  // Called when a write or a sync meets a full disk: true if it has made some room, so that this is
  // to be tried again. A write calls it under the store's lock, a sync maybe at the same time.
  std::function<bool()> on_full;
  // For fault tests: called before each Sync, whose answer an error of it is.
  std::function<absl::Status()> on_sync;
  // The same: called in each read, which has its connection as long as it goes on.
  std::function<void()> on_read;
};

class Store {
 public:
  // Opens the file, creates it if there is none, and brings an older layout up to date. One that is
  // there opens on a full disk too, and can be read.
  // FailedPrecondition for one that a newer tutti or another program wrote.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::filesystem::path& path,
                                                     StoreOptions options = {});
  virtual ~Store() = default;

  // Inserts the job and its first event (Queued), both or none. `job.sequence` and `event.sequence`
  // are given by the store. AlreadyExists if there is a job of that id or nonce.
  absl::StatusOr<JobRecord> InsertJob(const Job& job, const Event& event) {
    return InsertJob(job, std::vector<Event>{event});
  }
  // Inserts the same with all that it has gone through already.
  absl::StatusOr<JobRecord> InsertJob(const Job& job, const std::vector<Event>& events) {
    return InsertJob(job, [&events](int64_t) { return events; });
  }
  // Inserts the same with events that tell of the job's sequence. `events` is called in the
  // transaction, and may be called twice.
  using EventsFor = std::function<std::vector<Event>(int64_t sequence)>;
  virtual absl::StatusOr<JobRecord> InsertJob(const Job& job, const EventsFor& events,
                                              Durability durability = Durability::kPowerLoss) = 0;

  // Syncs the disk: once it returns OK all that was written before survives a loss of power too.
  // Other calls go on meanwhile, and those that wait at the same time share one sync of the disk.
  // One that fails may be tried again.
  virtual absl::Status Sync() = 0;
  // Returns the number of the last write of Durability::kDeferred; 0: there was none. Whoever has
  // read what such a write wrote gets at least its number.
  virtual int64_t LastDeferred() const = 0;
  // Waits for no disk.
  virtual WriteCounts CountWrites() const = 0;
  // Waits, as Sync does, for that write and all before it; returns at once if they survive a loss
  // of power already.
  virtual absl::Status AwaitDurable(int64_t write) = 0;
  // Does the same for all writes of Durability::kDeferred, unless it is known that this event
  // survives.
  virtual absl::Status AwaitEvent(int64_t sequence) = 0;

  // Returns the event with its sequence. Aborted if the job's last event is another one than
  // `expected_last`; FailedPrecondition if the state cannot follow.
  virtual absl::StatusOr<Event> AppendEvent(absl::string_view job_id, int64_t expected_last,
                                            const Event& event,
                                            Durability durability = Durability::kPowerLoss) = 0;

  virtual absl::StatusOr<JobRecord> GetJob(absl::string_view id,
                                           Reader reader = Reader::kAnyone) = 0;
  // Returns the job of a nonce; NotFound if no job that is there was submitted with it.
  virtual absl::StatusOr<JobRecord> JobOfNonce(absl::string_view nonce) = 0;
  virtual absl::StatusOr<std::vector<JobRecord>> ListJobs(const JobFilter& filter) = 0;
  // Returns the sequences of the jobs that ListJobs would return, newest first.
  virtual absl::StatusOr<std::vector<int64_t>> Sequences(const JobFilter& filter) = 0;
  // Returns the jobs with these sequences, newest first; those that are not there are left out.
  virtual absl::StatusOr<std::vector<JobRecord>> JobsOf(const std::vector<int64_t>& sequences) = 0;
  // Returns the jobs that have not ended, oldest first.
  virtual absl::StatusOr<std::vector<JobRecord>> NonTerminalJobs() = 0;
  // Returns the children, oldest first; none if there is no such job.
  virtual absl::StatusOr<std::vector<JobRecord>> ChildrenOf(absl::string_view parent) = 0;
  // Returns a page of a sweep's trials, in the time that their number takes, however many it has;
  // none if there is no such sweep.
  virtual absl::StatusOr<std::vector<TrialRecord>> TrialsOf(const TrialFilter& filter) = 0;
  // Counts the children that are in each state in which any is.
  virtual absl::StatusOr<std::map<JobState, int64_t>> CountChildren(absl::string_view parent) = 0;
  // Notes what trials have reported, in one commit; they have ended. Those that are not there are
  // left out.
  virtual absl::Status NoteTrials(const std::vector<TrialOutcome>& trials,
                                  Durability durability) = 0;
  // Returns them by their sequence, those after `after`.
  virtual absl::StatusOr<std::vector<UnreadTrial>> UnreadTrials(int64_t after, int limit) = 0;
  // Returns the newest completed job of that key; NotFound if there is none.
  virtual absl::StatusOr<JobRecord> CompletedWithKey(absl::string_view step_key) = 0;
  // Returns the oldest first, those after `after`. NotFound if there is no such job.
  virtual absl::StatusOr<std::vector<Event>> EventsOf(absl::string_view job_id,
                                                      int64_t after = 0) = 0;
  // Returns, oldest first too, the newest of those before event `before`, or of all if that is 0.
  virtual absl::StatusOr<std::vector<Event>> EventsBefore(absl::string_view job_id, int64_t before,
                                                          int limit) = 0;
  // Returns the ids of the job, its children and theirs; NotFound if there is no such job.
  virtual absl::StatusOr<std::vector<std::string>> TreeOf(absl::string_view id) = 0;
  // Deletes all of TreeOf, with events and launcher events. FailedPrecondition if one has not
  // ended.
  absl::Status DeleteJob(absl::string_view id) {
    const absl::Status begun = BeginDeletion(id);
    return begun.ok() ? FinishDeletion(id) : begun;
  }
  // Does the same in two parts. After the first, which is one small commit on the disk, no call
  // finds the job but TreeOf and UnfinishedDeletions, and its name is still taken. The second
  // removes it with all that descend from it in many small commits, between which other writes
  // have their turn, and may be called again after a crash; OK if there is nothing left.
  virtual absl::Status BeginDeletion(absl::string_view id) = 0;
  virtual absl::Status FinishDeletion(absl::string_view id) = 0;
  // Returns the jobs that are between the two.
  virtual absl::StatusOr<std::vector<std::string>> UnfinishedDeletions() = 0;

  // Keeps the launcher events `first`, `first`+1, … of a node of an allocation; those that are
  // there already are skipped. Returns the number up to which all are there: what to acknowledge.
  // If there is a gap before `first` nothing is kept, and the number says where to go on. NotFound
  // if there is no such job.
  virtual absl::StatusOr<int64_t> AddLauncherEvents(
      absl::string_view job_id, absl::string_view allocation, int node, int64_t first,
      const std::vector<std::string>& lines, Durability durability = Durability::kPowerLoss) = 0;
  // Returns the lines of a node after number `after`, in order; empty if nothing is known of it.
  virtual absl::StatusOr<std::vector<std::string>> LauncherEvents(absl::string_view allocation,
                                                                  int node, int64_t after = 0) = 0;

  // Returns the jobs without a parent that have ended and of which no files of `kind` have been
  // removed, by their sequence, those after `after`.
  virtual absl::StatusOr<std::vector<EndedJob>> EndedWith(absl::string_view kind, int64_t after,
                                                          int limit) = 0;
  // Notes it of all these jobs, in one commit; what was noted of that kind stays. Those that are
  // not there are left out.
  virtual absl::Status NoteRemoved(const std::vector<std::string>& jobs,
                                   const RemovedFiles& removed) = 0;
  // Returns what was removed, by kind; nothing if there is no such job.
  virtual absl::StatusOr<std::vector<RemovedFiles>> RemovedOf(absl::string_view job_id) = 0;

  // Returns the jobs that have ended and whose note is kPending, by their sequence.
  virtual absl::StatusOr<std::vector<EndedJob>> EndedWithPendingLogs() = 0;
  // Replaces the note of the job of that sequence, whose name another may have by now; what a loss
  // of power takes of it was pending, and is so again. NotFound if the job has none, or is not
  // there any more.
  virtual absl::Status NoteLogs(int64_t sequence, const LogsNote& note) = 0;
  // Replaces those of several, by sequence, in one transaction; one without a note is passed over.
  virtual absl::Status NoteLogsOf(const std::vector<std::pair<int64_t, LogsNote>>& notes) = 0;
  // Returns a job's note; nothing if it has none.
  virtual absl::StatusOr<std::optional<LogsNote>> LogsNoteOf(absl::string_view job_id) = 0;

  // Keeps it; another one of the same node gives way.
  virtual absl::Status AddCordon(const Cordon& cordon) = 0;
  // Removes the cordon of `node`; NotFound if it has none.
  virtual absl::Status RemoveCordon(absl::string_view node) = 0;
  virtual absl::StatusOr<std::vector<Cordon>> Cordons() = 0;

  // Keeps them all, in one commit; one that is there under that name gives way, and leaves it the
  // time at which it was created.
  virtual absl::Status PutSecrets(const std::vector<SealedSecret>& secrets) = 0;
  // Removes the secret; NotFound if there is none of that name.
  virtual absl::Status RemoveSecret(absl::string_view name) = 0;
  // Returns the secrets, by name.
  virtual absl::StatusOr<std::vector<SealedSecret>> Secrets() = 0;
  virtual absl::StatusOr<std::set<std::string>> SecretNames(Reader reader = Reader::kAnyone) = 0;
};

}  // namespace tutti::store
