#include "platform/store/store.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/threads/keyed_turns.h"
#include "platform/store/durable_mark.h"
#include "platform/store/group_commit.h"
#include "platform/store/log_rows.h"
#include "platform/store/reader_pool.h"
#include "platform/store/rows.h"
#include "platform/store/schema.h"
#include "platform/store/shared_database.h"
#include "platform/store/site_rows.h"
#include "platform/store/trial_rows.h"

namespace tutti::store {
namespace {

// The newest ?2 of the children of ?3 whose sequence is below ?1, and whose state is that one.
constexpr char kNewest[] = "SELECT job FROM job_states WHERE parent = ?3 AND job < ?1";

// Selects the sequences that a list has, newest first. For each state as many are read as the page
// may hold, so that it takes as long among few jobs as among many.
std::string PageQuery(const JobFilter& filter) {
  constexpr char kPage[] = " ORDER BY job DESC LIMIT ?2";
  if (filter.states.empty()) return absl::StrCat(kNewest, kPage);
  std::vector<std::string> parts;
  for (const JobState state : std::set<JobState>(filter.states.begin(), filter.states.end())) {
    parts.push_back(
        absl::StrCat("SELECT * FROM (", kNewest, " AND state = '", Name(state), "'", kPage, ")"));
  }
  return absl::StrCat("SELECT job FROM (", absl::StrJoin(parts, " UNION ALL "), ")", kPage);
}

void BindPage(SQLite::Statement& rows, const JobFilter& filter) {
  rows.bind(1, filter.before == 0 ? std::numeric_limits<int64_t>::max() : filter.before);
  rows.bind(2, std::max(filter.limit, 1));
  rows.bind(3, filter.parent);
}

// The ids of job ?1 and of all that descend from it.
constexpr char kTree[] =
    "WITH RECURSIVE tree (id) AS (SELECT id FROM jobs WHERE id = ?1 UNION ALL "
    "SELECT j.id FROM tree JOIN job_states s ON s.parent = tree.id "
    "JOIN jobs j ON j.sequence = s.job) ";

// A deletion that has begun of a job from which job `j` descends.
constexpr char kDeletionAbove[] =
    "WITH RECURSIVE above (id) AS (SELECT j.parent UNION ALL SELECT p.parent FROM above "
    "JOIN jobs p ON p.id = above.id) SELECT 1 FROM above JOIN jobs a ON a.id = above.id "
    "JOIN deletions d ON d.job = a.sequence";

constexpr size_t kJobsOfSlice = 32;                                   // a few milliseconds
constexpr absl::Duration kPatienceWithLog = absl::Milliseconds(200);  // of a slice
// To read so many jobs with their specs takes no longer.
constexpr size_t kShortPage = 100;

ReadKind KindOf(Reader reader) {
  return reader == Reader::kLockHolder ? ReadKind::kLockHolder : ReadKind::kShort;
}
ReadKind KindOfPage(size_t jobs) { return jobs <= kShortPage ? ReadKind::kShort : ReadKind::kLong; }

// As precise as the store keeps it.
absl::Time ToMicros(absl::Time time) { return absl::FromUnixMicros(absl::ToUnixMicros(time)); }

absl::Status CheckFollows(absl::string_view job_id, JobState from, JobState to) {
  if (CanFollow(from, to)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job_id, " is ", Name(from), " and cannot become ", Name(to)));
}

// Whether a new job can have gone through that.
absl::Status CheckPast(absl::string_view id, const std::vector<Event>& events) {
  if (events.empty() || events.front().state != JobState::kQueued) {
    return absl::FailedPreconditionError("a job's first event is Queued");
  }
  for (size_t i = 1; i < events.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(CheckFollows(id, events[i - 1].state, events[i].state));
  }
  return absl::OkStatus();
}

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(std::unique_ptr<SharedDatabase> database) : database_(std::move(database)) {}

  // Skips the numbers of events that a loss of power may have taken, so that no first step of a
  // process waits for the disk. Where that fails, as on a full disk, the first event does it.
  void SkipAtOnce() {
    const auto any = Select([](SqliteConnection& sqlite) {
      return sqlite.execAndGet("SELECT count(*) FROM sqlite_sequence WHERE name = 'events'")
                 .getInt() > 0;
    });
    if (!any.ok()) return;
    const auto skip = [this](SqliteConnection& sqlite) {
      SkipNumbersOfLostEvents(sqlite);
      return absl::OkStatus();
    };
    skipped_ = !*any || writes_.Write(skip, Durability::kPowerLoss).ok();
  }

  absl::StatusOr<JobRecord> InsertJob(const Job& job, const EventsFor& events,
                                      Durability durability) override {
    if (job.id.empty()) return absl::InvalidArgumentError("a job needs an id");
    JobRecord record{.job = job, .last = {}, .started = std::nullopt};
    record.job.created = ToMicros(job.created);
    const auto insert = [&](SqliteConnection& sqlite) -> absl::Status {
      if (HasJob(sqlite, job.id)) {
        return absl::AlreadyExistsError(absl::StrCat("there is a job \"", job.id, "\" already"));
      }
      if (HasNonce(sqlite, job.nonce)) {
        return absl::AlreadyExistsError("there is a job of that submission already");
      }
      record.job.sequence = InsertRow(sqlite, job);
      const std::vector<Event> past = events(record.job.sequence);
      TUTTI_RETURN_IF_ERROR(CheckPast(job.id, past));
      SkipNumbersOfLostEvents(sqlite);
      record.last = past.back();
      record.last.time = ToMicros(past.back().time);
      for (const Event& event : past) record.last.sequence = InsertEvent(sqlite, job.id, event);
      return absl::OkStatus();
    };
    TUTTI_RETURN_IF_ERROR(InsertAndSync(insert, durability, record.last.sequence, job.id));
    skipped_ = true;
    return record;
  }

  absl::Status Sync() override { return mark_.AwaitAll(); }
  WriteCounts CountWrites() const override { return database_->CountWrites(); }
  int64_t LastDeferred() const override { return mark_.last_deferred(); }
  absl::Status AwaitDurable(int64_t write) override { return mark_.Await(write); }
  absl::Status AwaitEvent(int64_t sequence) override {
    return mark_.HasEvent(sequence) ? absl::OkStatus() : mark_.Await(mark_.last_deferred());
  }

  absl::StatusOr<Event> AppendEvent(absl::string_view job_id, int64_t expected_last,
                                    const Event& event, Durability durability) override {
    Event appended = event;
    const auto append = [&](SqliteConnection& sqlite) -> absl::Status {
      TUTTI_RETURN_IF_ERROR(CheckStep(sqlite, job_id, expected_last, event.state));
      SkipNumbersOfLostEvents(sqlite);
      appended.sequence = InsertEvent(sqlite, job_id, event);
      return absl::OkStatus();
    };
    TUTTI_RETURN_IF_ERROR(writes_.Write(append, AtFirstDurable(durability), appended.sequence));
    skipped_ = true;
    return appended;
  }

  absl::StatusOr<JobRecord> GetJob(absl::string_view id, Reader reader) override {
    absl::StatusOr<JobRecord> record;
    TUTTI_RETURN_IF_ERROR(Read(KindOf(reader), [&](SqliteConnection& sqlite) {
      record = SelectJob(sqlite, id);
      return record.status();
    }));
    return record;
  }

  absl::StatusOr<JobRecord> JobOfNonce(absl::string_view nonce) override {
    absl::StatusOr<JobRecord> record;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kShort, [&](SqliteConnection& sqlite) {
      record = SelectJobOfNonce(sqlite, nonce);
      return record.status();
    }));
    return record;
  }

  absl::StatusOr<std::vector<JobRecord>> ListJobs(const JobFilter& filter) override {
    std::vector<JobRecord> records;
    TUTTI_RETURN_IF_ERROR(Read(
        KindOfPage(static_cast<size_t>(std::max(filter.limit, 1))), [&](SqliteConnection& sqlite) {
          SQLite::Statement rows(sqlite, absl::StrCat(kSelectRecord, " WHERE s.job IN (",
                                                      PageQuery(filter), ") ORDER BY s.job DESC"));
          BindPage(rows, filter);
          return ReadRecords(rows, records);
        }));
    return records;
  }

  absl::StatusOr<std::vector<int64_t>> Sequences(const JobFilter& filter) override {
    std::vector<int64_t> sequences;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kShort, [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(sqlite, PageQuery(filter));
      BindPage(rows, filter);
      while (rows.executeStep()) sequences.push_back(rows.getColumn(0).getInt64());
      return absl::OkStatus();
    }));
    return sequences;
  }

  absl::StatusOr<std::vector<JobRecord>> JobsOf(const std::vector<int64_t>& sequences) override {
    std::vector<JobRecord> records;
    if (sequences.empty()) return records;
    TUTTI_RETURN_IF_ERROR(Read(KindOfPage(sequences.size()), [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(
          sqlite, absl::StrCat(kSelectRecord, " WHERE s.job IN (", absl::StrJoin(sequences, ","),
                               ") ORDER BY s.job DESC"));
      return ReadRecords(rows, records);
    }));
    return records;
  }

  absl::StatusOr<std::vector<JobRecord>> NonTerminalJobs() override {
    std::vector<JobRecord> records;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kLong, [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(
          sqlite, absl::StrCat(kSelectRecord,
                               " WHERE s.state NOT IN ('Completed', 'Failed', 'Canceled') "
                               "ORDER BY s.job"));
      return ReadRecords(rows, records);
    }));
    return records;
  }

  absl::StatusOr<std::vector<JobRecord>> ChildrenOf(absl::string_view parent) override {
    std::vector<JobRecord> records;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kLong, [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(
          sqlite,
          absl::StrCat(kSelectRecord, " WHERE s.parent = ? AND s.parent != '' ORDER BY s.job"));
      rows.bind(1, std::string(parent));
      return ReadRecords(rows, records);
    }));
    return records;
  }

  absl::StatusOr<std::vector<TrialRecord>> TrialsOf(const TrialFilter& filter) override {
    std::vector<TrialRecord> trials;
    if (filter.sweep.empty()) return trials;
    const auto most = static_cast<size_t>(std::max(filter.limit, 1));
    TUTTI_RETURN_IF_ERROR(Read(KindOfPage(most), [&](SqliteConnection& sqlite) {
      return SelectTrials(sqlite, filter, trials);
    }));
    return trials;
  }

  absl::StatusOr<std::map<JobState, int64_t>> CountChildren(absl::string_view parent) override {
    if (parent.empty()) return std::map<JobState, int64_t>();
    return Select([&](SqliteConnection& sqlite) { return CountStates(sqlite, parent); });
  }

  absl::Status NoteTrials(const std::vector<TrialOutcome>& trials, Durability durability) override {
    const auto note = [&](SqliteConnection& sqlite) {
      UpdateTrials(sqlite, trials);
      return absl::OkStatus();
    };
    return writes_.Write(note, durability);
  }

  absl::StatusOr<std::vector<UnreadTrial>> UnreadTrials(int64_t after, int limit) override {
    return Select(
        [&](SqliteConnection& sqlite) { return SelectUnreadTrials(sqlite, after, limit); });
  }

  absl::StatusOr<JobRecord> CompletedWithKey(absl::string_view step_key) override {
    std::vector<JobRecord> records;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kShort, [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(sqlite, absl::StrCat(kSelectRecord,
                                                  " WHERE j.step_key = ? AND j.step_key != '' AND "
                                                  "s.state = 'Completed' AND NOT EXISTS (",
                                                  kDeletionAbove,
                                                  ") "
                                                  "ORDER BY j.sequence DESC LIMIT 1"));
      rows.bind(1, std::string(step_key));
      return ReadRecords(rows, records);
    }));
    if (records.empty()) return absl::NotFoundError("no completed job has that key");
    return std::move(records.front());
  }

  absl::StatusOr<std::vector<Event>> EventsOf(absl::string_view job_id, int64_t after) override {
    std::vector<Event> events;
    TUTTI_RETURN_IF_ERROR(Read(after > 0 ? ReadKind::kShort : ReadKind::kLong,
                               [&](SqliteConnection& sqlite) -> absl::Status {
                                 TUTTI_RETURN_IF_ERROR(LastStep(sqlite, job_id).status());
                                 SQLite::Statement rows(
                                     sqlite, absl::StrCat(kSelectEvent,
                                                          " WHERE job_id = ? AND sequence > ? "
                                                          "ORDER BY sequence"));
                                 rows.bind(1, std::string(job_id));
                                 rows.bind(2, after);
                                 while (rows.executeStep()) {
                                   TUTTI_ASSIGN_OR_RETURN(Event event, ReadEvent(rows));
                                   events.push_back(std::move(event));
                                 }
                                 return absl::OkStatus();
                               }));
    return events;
  }

  absl::StatusOr<std::vector<Event>> EventsBefore(absl::string_view job_id, int64_t before,
                                                  int limit) override {
    std::vector<Event> events;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kShort, [&](SqliteConnection& sqlite) -> absl::Status {
      TUTTI_RETURN_IF_ERROR(LastStep(sqlite, job_id).status());
      SQLite::Statement rows(sqlite, absl::StrCat(kSelectEvent,
                                                  " WHERE job_id = ? AND sequence < ? "
                                                  "ORDER BY sequence DESC LIMIT ?"));
      rows.bind(1, std::string(job_id));
      rows.bind(2, before == 0 ? std::numeric_limits<int64_t>::max() : before);
      rows.bind(3, std::max(limit, 1));
      while (rows.executeStep()) {
        TUTTI_ASSIGN_OR_RETURN(Event event, ReadEvent(rows));
        events.push_back(std::move(event));
      }
      return absl::OkStatus();
    }));
    std::reverse(events.begin(), events.end());
    return events;
  }

  absl::StatusOr<std::vector<std::string>> TreeOf(absl::string_view id) override {
    std::vector<std::string> ids;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kLong, [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(sqlite, absl::StrCat(kTree, "SELECT id FROM tree"));
      rows.bind(1, std::string(id));
      while (rows.executeStep()) ids.push_back(rows.getColumn(0).getString());
      return ids.empty() ? NoJob(id) : absl::OkStatus();
    }));
    return ids;
  }

  absl::Status BeginDeletion(absl::string_view id) override {
    // Those that have ended do not begin again, nor do their parents get others.
    TUTTI_RETURN_IF_ERROR(
        Read(ReadKind::kLong, [&](SqliteConnection& sqlite) { return CheckAllEnded(sqlite, id); }));
    const auto mark = [&](SqliteConnection& sqlite) -> absl::Status {
      TUTTI_ASSIGN_OR_RETURN(const Event last, LastStep(sqlite, id));
      if (!IsEnd(last.state)) return HasNotEnded(id, Name(last.state));
      MoveState(sqlite, id, "job_states", "deletions");
      return absl::OkStatus();
    };
    const auto undo = [&](SqliteConnection& sqlite) {
      MoveState(sqlite, id, "deletions", "job_states");
    };
    return WriteAndSync(mark, undo);
  }

  absl::Status FinishDeletion(absl::string_view id) override {
    const auto jobs = TreeOf(id);
    if (absl::IsNotFound(jobs.status())) return absl::OkStatus();
    TUTTI_RETURN_IF_ERROR(jobs.status());
    // From the end, as each comes behind its parent, by which a crash finds it again.
    for (size_t end = jobs->size(); end > 0;) {
      if (end < jobs->size()) LeaveTheLogToOthers();
      const size_t begin = end - std::min(end, kJobsOfSlice);
      const auto remove = [&](SqliteConnection& sqlite) {
        const CachedStatement job(sqlite, "DELETE FROM jobs WHERE id = ?");  // the rest cascades
        for (size_t i = end; i > begin; --i) {
          job->reset();
          job->bind(1, (*jobs)[i - 1]);
          job->exec();
        }
        return absl::OkStatus();
      };
      TUTTI_RETURN_IF_ERROR(writes_.Write(remove, Durability::kCrash));
      end = begin;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> UnfinishedDeletions() override {
    std::vector<std::string> ids;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kShort, [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(
          sqlite, "SELECT j.id FROM deletions d JOIN jobs j ON j.sequence = d.job ORDER BY d.job");
      while (rows.executeStep()) ids.push_back(rows.getColumn(0).getString());
      return absl::OkStatus();
    }));
    return ids;
  }

  absl::StatusOr<std::vector<EndedJob>> EndedWith(absl::string_view kind, int64_t after,
                                                  int limit) override {
    std::vector<EndedJob> jobs;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kLong, [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(
          sqlite,
          "SELECT j.id, s.job, e.time_us FROM job_states s JOIN jobs j ON j.sequence = s.job "
          "JOIN events e ON e.sequence = s.last_event WHERE s.parent = '' AND s.job > ?1 "
          "AND s.state IN ('Completed', 'Failed', 'Canceled') AND NOT EXISTS "
          "(SELECT * FROM removed_files r WHERE r.job = s.job AND r.kind = ?2) "
          "ORDER BY s.job LIMIT ?3");
      rows.bind(1, after);
      rows.bind(2, std::string(kind));
      rows.bind(3, limit);
      while (rows.executeStep()) {
        jobs.push_back({rows.getColumn(0).getString(), rows.getColumn(1).getInt64(),
                        absl::FromUnixMicros(rows.getColumn(2).getInt64())});
      }
      return absl::OkStatus();
    }));
    return jobs;
  }

  absl::Status NoteRemoved(const std::vector<std::string>& jobs,
                           const RemovedFiles& removed) override {
    std::vector<std::string> noted;
    const auto note = [&](SqliteConnection& sqlite) {
      noted = InsertRemoved(sqlite, jobs, removed);
      return absl::OkStatus();
    };
    return ChangeInTurn("removed " + removed.kind, note, [&](SqliteConnection& sqlite) {
      DeleteRemoved(sqlite, noted, removed.kind);
    });
  }

  absl::StatusOr<std::vector<RemovedFiles>> RemovedOf(absl::string_view job_id) override {
    return Select([&](SqliteConnection& sqlite) { return SelectRemoved(sqlite, job_id); });
  }

  absl::StatusOr<std::vector<EndedJob>> EndedWithPendingLogs() override {
    return Select(SelectPendingLogs);
  }

  absl::Status NoteLogs(int64_t sequence, const LogsNote& note) override {
    const auto update = [&](SqliteConnection& sqlite) {
      return UpdateLogs(sqlite, sequence, note)
                 ? absl::OkStatus()
                 : absl::NotFoundError(absl::StrCat("no note of the logs of job ", sequence));
    };
    return writes_.Write(update, Durability::kCrash);
  }

  absl::Status NoteLogsOf(const std::vector<std::pair<int64_t, LogsNote>>& notes) override {
    const auto update = [&](SqliteConnection& sqlite) {
      for (const auto& [sequence, note] : notes) UpdateLogs(sqlite, sequence, note);
      return absl::OkStatus();
    };
    return writes_.Write(update, Durability::kCrash);
  }

  absl::StatusOr<std::optional<LogsNote>> LogsNoteOf(absl::string_view job_id) override {
    return Select([&](SqliteConnection& sqlite) { return SelectLogs(sqlite, job_id); });
  }

  absl::Status AddCordon(const Cordon& cordon) override {
    std::optional<Cordon> former;
    const auto add = [&](SqliteConnection& sqlite) {
      former = CordonOf(sqlite, cordon.node);
      PutCordon(sqlite, cordon.node, cordon);
      return absl::OkStatus();
    };
    return ChangeInTurn("cordon " + cordon.node, add,
                        [&](SqliteConnection& sqlite) { PutCordon(sqlite, cordon.node, former); });
  }

  absl::Status RemoveCordon(absl::string_view name) override {
    const std::string node(name);
    std::optional<Cordon> former;
    const auto remove = [&](SqliteConnection& sqlite) {
      former = CordonOf(sqlite, node);
      if (!former) return absl::NotFoundError(absl::StrCat("node ", node, " is not cordoned"));
      PutCordon(sqlite, node, std::nullopt);
      return absl::OkStatus();
    };
    return ChangeInTurn("cordon " + node, remove,
                        [&](SqliteConnection& sqlite) { PutCordon(sqlite, node, former); });
  }

  absl::StatusOr<std::vector<Cordon>> Cordons() override { return Select(SelectCordons); }

  absl::Status PutSecrets(const std::vector<SealedSecret>& secrets) override {
    std::vector<std::optional<SealedSecret>> former;
    const auto put = [&](SqliteConnection& sqlite) {
      former.clear();
      for (const SealedSecret& secret : secrets) {
        former.push_back(SecretOf(sqlite, secret.name));
        PutSecret(sqlite, secret.name, secret);
      }
      return absl::OkStatus();
    };
    return ChangeInTurn("secrets", put, [&](SqliteConnection& sqlite) {
      for (size_t i = secrets.size(); i > 0; --i) {
        PutSecret(sqlite, secrets[i - 1].name, former[i - 1]);
      }
    });
  }

  absl::Status RemoveSecret(absl::string_view secret) override {
    const std::string name(secret);
    std::optional<SealedSecret> former;
    const auto remove = [&](SqliteConnection& sqlite) {
      former = SecretOf(sqlite, name);
      if (!former) return absl::NotFoundError(absl::StrCat("there is no secret \"", name, "\""));
      PutSecret(sqlite, name, std::nullopt);
      return absl::OkStatus();
    };
    return ChangeInTurn("secrets", remove,
                        [&](SqliteConnection& sqlite) { PutSecret(sqlite, name, former); });
  }

  absl::StatusOr<std::vector<SealedSecret>> Secrets() override { return Select(SelectSecrets); }

  absl::StatusOr<std::set<std::string>> SecretNames(Reader reader) override {
    return Select(SelectSecretNames, KindOf(reader));
  }

  absl::StatusOr<int64_t> AddLauncherEvents(absl::string_view job_id, absl::string_view allocation,
                                            int node, int64_t first,
                                            const std::vector<std::string>& lines,
                                            Durability durability) override {
    if (first < 1) return absl::InvalidArgumentError("launcher events are numbered from 1");
    int64_t last = 0;
    const auto add = [&](SqliteConnection& sqlite) -> absl::Status {
      if (!HasJob(sqlite, job_id)) return NoJob(job_id);
      last = LastLauncherEvent(sqlite, allocation, node);
      if (first > last + 1) return absl::OkStatus();
      const CachedStatement insert(sqlite, "INSERT INTO launcher_events VALUES (?, ?, ?, ?, ?)");
      for (size_t skip = static_cast<size_t>(last + 1 - first); skip < lines.size(); ++skip) {
        insert->reset();
        insert->bind(1, std::string(allocation));
        insert->bind(2, node);
        insert->bind(3, ++last);
        insert->bind(4, std::string(job_id));
        insert->bind(5, lines[skip]);
        insert->exec();
      }
      return absl::OkStatus();
    };
    TUTTI_RETURN_IF_ERROR(writes_.Write(add, durability));
    return last;
  }

  absl::StatusOr<std::vector<std::string>> LauncherEvents(absl::string_view allocation, int node,
                                                          int64_t after) override {
    std::vector<std::string> lines;
    TUTTI_RETURN_IF_ERROR(Read(ReadKind::kShort, [&](SqliteConnection& sqlite) {
      SQLite::Statement rows(sqlite,
                             "SELECT line FROM launcher_events WHERE allocation = ? AND node = ? "
                             "AND sequence > ? ORDER BY sequence");
      rows.bind(1, std::string(allocation));
      rows.bind(2, node);
      rows.bind(3, after);
      while (rows.executeStep()) lines.push_back(rows.getColumn(0).getString());
      return absl::OkStatus();
    }));
    return lines;
  }

 private:
  // A log that grows faster than its pages are moved has all writes wait in the end.
  void LeaveTheLogToOthers() { database_->AwaitShortLog(kPatienceWithLog); }
  absl::Status Read(ReadKind kind, const std::function<absl::Status(SqliteConnection&)>& body) {
    return database_->Read(kind, body);
  }
  // Returns what `select` returns of the database.
  template <typename Function>
  auto Select(const Function& select, ReadKind kind = ReadKind::kShort)
      -> absl::StatusOr<decltype(select(std::declval<SqliteConnection&>()))> {
    decltype(select(std::declval<SqliteConnection&>())) selected;
    TUTTI_RETURN_IF_ERROR(Read(kind, [&](SqliteConnection& sqlite) {
      selected = select(sqlite);
      return absl::OkStatus();
    }));
    return selected;
  }

  // Followers go on behind the number of the last event that they were told, also of one that was
  // told and then lost with the power. Between two syncs lie far fewer events than are skipped, and
  // the write of a process that skips them is synced.
  void SkipNumbersOfLostEvents(SQLite::Database& sqlite) {
    if (skipped_) return;
    sqlite.exec("UPDATE sqlite_sequence SET seq = seq + 1000000 WHERE name = 'events'");
  }

  absl::Status InsertAndSync(const GroupCommit::Body& insert, Durability durability,
                             const int64_t& last_event, const std::string& id) {
    if (durability != Durability::kPowerLoss) {
      return writes_.Write(insert, AtFirstDurable(durability), last_event);
    }
    const auto undo = [&](SqliteConnection& sqlite) {
      SQLite::Statement remove(sqlite, "DELETE FROM jobs WHERE id = ?");
      remove.bind(1, id);
      remove.exec();
    };
    return WriteAndSync(insert, undo, last_event);
  }

  // Commits `body`, then waits for the disk with no lock held, so that other writes go on. What
  // the disk does not take `undo` takes back.
  using Undo = std::function<void(SqliteConnection&)>;
  absl::Status WriteAndSync(const GroupCommit::Body& body, const Undo& undo,
                            const int64_t& last_event = 0) {
    int64_t number = 0;
    TUTTI_RETURN_IF_ERROR(writes_.Write(body, Durability::kDeferred, last_event, &number));
    absl::Status synced = mark_.Await(number);
    if (synced.ok()) return synced;
    const auto take_back = [&](SqliteConnection& sqlite) {
      undo(sqlite);
      return absl::OkStatus();
    };
    synced.Update(writes_.Write(take_back, Durability::kCrash));
    return synced;
  }

  // Does the same, of each thing one caller at a time, so that nobody has changed what is taken
  // back.
  absl::Status ChangeInTurn(const std::string& thing, const GroupCommit::Body& change,
                            const Undo& undo) {
    const base::KeyedTurns::Turn one_at_a_time(changes_, thing);
    return WriteAndSync(change, undo);
  }

  // Where SkipAtOnce had no room.
  Durability AtFirstDurable(Durability durability) const {
    return skipped_ ? durability : Durability::kPowerLoss;
  }

  // Moves what is known of a job's state from the one table to the other: a job that has none in
  // job_states is found by nobody.
  static void MoveState(SqliteConnection& sqlite, absl::string_view id, absl::string_view from,
                        absl::string_view to) {
    constexpr absl::string_view kThatJob = "(SELECT sequence FROM jobs WHERE id = ?)";
    for (const std::string& sql :
         {absl::StrCat("INSERT INTO ", to,
                       " SELECT job, parent, state, last_event, started_us FROM ", from,
                       " WHERE job = ", kThatJob),
          absl::StrCat("DELETE FROM ", from, " WHERE job = ", kThatJob)}) {
      SQLite::Statement move(sqlite, sql);
      move.bind(1, std::string(id));
      move.exec();
    }
  }

  static absl::Status HasNotEnded(absl::string_view id, absl::string_view state) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id, " is ", state, "; cancel it before it is deleted"));
  }

  static absl::Status CheckAllEnded(SqliteConnection& sqlite, absl::string_view id) {
    SQLite::Statement live(
        sqlite, absl::StrCat(kTree,
                             "SELECT j.id, s.state FROM tree JOIN jobs j ON j.id = tree.id "
                             "JOIN job_states s ON s.job = j.sequence "
                             "WHERE s.state NOT IN ('Completed', 'Failed', 'Canceled') LIMIT 1"));
    live.bind(1, std::string(id));
    if (!live.executeStep()) return absl::OkStatus();
    return HasNotEnded(live.getColumn(0).getString(), live.getColumn(1).getString());
  }

  // Whether a job whose last event is `expected_last` may take the step to `next`.
  static absl::Status CheckStep(SqliteConnection& sqlite, absl::string_view job_id,
                                int64_t expected_last, JobState next) {
    TUTTI_ASSIGN_OR_RETURN(const Event event, LastStep(sqlite, job_id));
    if (event.sequence != expected_last) {
      return absl::AbortedError(absl::StrCat("job ", job_id, " has moved on to ", Name(event.state),
                                             " (event ", event.sequence, ", expected ",
                                             expected_last, ")"));
    }
    return CheckFollows(job_id, event.state, next);
  }

  // Cordons, secrets and notes of removed files take turns here before they are written.
  base::KeyedTurns changes_;
  const std::unique_ptr<SharedDatabase> database_;
  DurableMark& mark_ = database_->mark();
  GroupCommit& writes_ = database_->writes();
  std::atomic<bool> skipped_ = false;
};

}  // namespace

absl::string_view Name(CordonAuthor author) {
  switch (author) {
    case CordonAuthor::kUser:
      return "user";
    case CordonAuthor::kCheck:
      return "check";
    case CordonAuthor::kJobs:
      return "jobs";
  }
  return "user";
}

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::filesystem::path& path,
                                                   StoreOptions options) {
  TUTTI_ASSIGN_OR_RETURN(
      std::unique_ptr<SharedDatabase> database,
      SharedDatabase::Open(path, AllMigrations(),
                           {options.busy_timeout, std::move(options.on_commit),
                            std::move(options.on_sync), std::move(options.on_full)},
                           std::move(options.on_read)));
  auto store = std::make_unique<SqliteStore>(std::move(database));
  store->SkipAtOnce();
  return store;
}

}  // namespace tutti::store
