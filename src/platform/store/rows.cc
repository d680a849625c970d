#include "platform/store/rows.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/store/log_rows.h"
#include "platform/store/trial_rows.h"
#include "spec/json/job_json.h"

namespace tutti::store {

// A job with its last event and the time of its first Running event since it was last Queued: three
// seeks by number, whatever there is of other jobs.
#define TUTTI_SELECT_RECORD(spec, file_text)                                                    \
  "SELECT j.id, j.sequence, j.created_us, " spec ", " file_text                                 \
  ", j.snapshot, j.job_token, j.warnings, e.sequence, e.time_us, e.state, e.reason, e.detail, " \
  "s.started_us, j.parent, j.step, j.step_key, j.nonce"
const char kSelectRecord[] = TUTTI_SELECT_RECORD(
    "j.spec", "j.file_text") " FROM job_states s JOIN jobs j ON j.sequence = s.job "
                             "JOIN events e ON e.sequence = s.last_event";
const char kSelectBareRecord[] = TUTTI_SELECT_RECORD("'{}'", "''");
#undef TUTTI_SELECT_RECORD

const char kSelectEvent[] = "SELECT sequence, time_us, state, reason, detail FROM events";

namespace {

absl::StatusOr<Event> EventAt(SQLite::Statement& row, int column) {
  Event event;
  event.sequence = row.getColumn(column).getInt64();
  event.time = absl::FromUnixMicros(row.getColumn(column + 1).getInt64());
  TUTTI_ASSIGN_OR_RETURN(event.state, JobStateFromName(row.getColumn(column + 2).getString()));
  event.reason = row.getColumn(column + 3).getString();
  event.detail = row.getColumn(column + 4).getString();
  return event;
}

absl::StatusOr<std::vector<std::string>> WarningsFromJson(const std::string& text) {
  if (text == "[]") return std::vector<std::string>();
  const auto document = nlohmann::json::parse(text, nullptr, false);
  std::vector<std::string> warnings;
  for (const auto& warning : document) {
    if (!warning.is_string()) return absl::InvalidArgumentError("warnings are not strings");
    warnings.push_back(warning.get<std::string>());
  }
  return warnings;
}

absl::StatusOr<JobRecord> RecordAt(SQLite::Statement& row) {
  JobRecord record;
  record.job.id = row.getColumn(0).getString();
  record.job.sequence = row.getColumn(1).getInt64();
  record.job.created = absl::FromUnixMicros(row.getColumn(2).getInt64());
  const std::string job = row.getColumn(3).getString();
  if (job != "{}") {
    TUTTI_ASSIGN_OR_RETURN(record.job.spec, spec::JobSpecFromJson(job));
  }
  record.job.file_text = row.getColumn(4).getString();
  record.job.snapshot = row.getColumn(5).getString();
  record.job.job_token = row.getColumn(6).getString();
  TUTTI_ASSIGN_OR_RETURN(record.job.warnings, WarningsFromJson(row.getColumn(7).getString()));
  TUTTI_ASSIGN_OR_RETURN(record.last, EventAt(row, 8));
  if (!row.getColumn(13).isNull()) {
    record.started = absl::FromUnixMicros(row.getColumn(13).getInt64());
  }
  record.job.parent = row.getColumn(14).getString();
  record.job.step = row.getColumn(15).getString();
  record.job.step_key = row.getColumn(16).getString();
  record.job.nonce = row.getColumn(17).getString();
  return record;
}

// Writes what follows from the event: the job's state, and when it has begun, which its return to
// the queue takes back.
void NoteState(SqliteConnection& sqlite, absl::string_view job_id, const Event& event,
               int64_t sequence) {
  const CachedStatement note(
      sqlite,
      "INSERT INTO job_states (job, parent, state, last_event, started_us) "
      "SELECT sequence, parent, ?2, ?3, iif(?2 = 'Running', ?4, NULL) FROM jobs WHERE id = ?1 "
      "ON CONFLICT (job) DO UPDATE SET state = excluded.state, last_event = excluded.last_event, "
      "started_us = iif(excluded.state = 'Queued', NULL, "
      "                 coalesce(started_us, excluded.started_us))");
  note->bind(1, std::string(job_id));
  note->bind(2, std::string(Name(event.state)));
  note->bind(3, sequence);
  note->bind(4, absl::ToUnixMicros(event.time));
  note->exec();
}

}  // namespace

absl::Status NoJob(absl::string_view id) {
  return absl::NotFoundError(absl::StrCat("there is no job \"", id, "\""));
}

absl::StatusOr<Event> ReadEvent(SQLite::Statement& row) { return EventAt(row, 0); }

// What the database holds was checked when it was written.
absl::StatusOr<JobRecord> ReadRecord(SQLite::Statement& row) {
  auto record = RecordAt(row);
  if (record.ok()) return record;
  return absl::DataLossError(absl::StrCat("job ", row.getColumn(0).getString(),
                                          " is damaged in the store: ", record.status().message()));
}

absl::StatusOr<JobRecord> SelectJob(SQLite::Database& sqlite, absl::string_view id) {
  SQLite::Statement row(sqlite, absl::StrCat(kSelectRecord, " WHERE j.id = ?"));
  row.bind(1, std::string(id));
  if (!row.executeStep()) return NoJob(id);
  return ReadRecord(row);
}

absl::StatusOr<JobRecord> SelectJobOfNonce(SQLite::Database& sqlite, absl::string_view nonce) {
  // The first condition lets SQLite take the index, which has no empty ones.
  SQLite::Statement row(sqlite,
                        absl::StrCat(kSelectRecord, " WHERE j.nonce != '' AND j.nonce = ?"));
  row.bind(1, std::string(nonce));
  if (!row.executeStep()) return absl::NotFoundError("there is no job of that submission");
  return ReadRecord(row);
}

absl::Status ReadRecords(SQLite::Statement& rows, std::vector<JobRecord>& records) {
  while (rows.executeStep()) {
    TUTTI_ASSIGN_OR_RETURN(JobRecord record, ReadRecord(rows));
    records.push_back(std::move(record));
  }
  return absl::OkStatus();
}

int64_t InsertEvent(SqliteConnection& sqlite, absl::string_view job_id, const Event& event) {
  const CachedStatement insert(sqlite,
                               "INSERT INTO events (job_id, time_us, state, reason, detail) "
                               "VALUES (?, ?, ?, ?, ?)");
  insert->bind(1, std::string(job_id));
  insert->bind(2, absl::ToUnixMicros(event.time));
  insert->bind(3, std::string(Name(event.state)));
  insert->bind(4, event.reason);
  insert->bind(5, event.detail);
  insert->exec();
  const int64_t sequence = sqlite.getLastInsertRowid();
  NoteState(sqlite, job_id, event, sequence);
  return sequence;
}

absl::StatusOr<Event> LastStep(SqliteConnection& sqlite, absl::string_view job_id) {
  const CachedStatement last(sqlite,
                             "SELECT s.last_event, s.state FROM jobs j "
                             "JOIN job_states s ON s.job = j.sequence WHERE j.id = ?");
  last->bind(1, std::string(job_id));
  if (!last->executeStep()) return NoJob(job_id);
  Event event;
  event.sequence = last->getColumn(0).getInt64();
  TUTTI_ASSIGN_OR_RETURN(event.state, JobStateFromName(last->getColumn(1).getString()));
  return event;
}

int64_t InsertRow(SqliteConnection& sqlite, const Job& job) {
  const CachedStatement insert(sqlite,
                               "INSERT INTO jobs (id, created_us, spec, file_text, snapshot, "
                               "job_token, warnings, parent, step, step_key, nonce) "
                               "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert->bind(1, job.id);
  insert->bind(2, absl::ToUnixMicros(job.created));
  insert->bind(3, spec::ToJson(job.spec));
  insert->bind(4, job.file_text);
  insert->bind(5, job.snapshot);
  insert->bind(6, job.job_token);
  insert->bind(
      7,
      nlohmann::json(job.warnings).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  insert->bind(8, job.parent);
  insert->bind(9, job.step);
  insert->bind(10, job.step_key);
  insert->bind(11, job.nonce);
  insert->exec();
  const int64_t sequence = sqlite.getLastInsertRowid();
  if (job.trial_values) InsertTrial(sqlite, sequence, job);
  const bool has_logs = job.spec.kind == spec::JobKind::kCommand;
  if (has_logs && job.spec.logs_place) InsertPendingLogs(sqlite, sequence, job.created);
  return sequence;
}

bool HasJob(SqliteConnection& sqlite, absl::string_view id) {
  const CachedStatement found(sqlite, "SELECT 1 FROM jobs WHERE id = ?");
  found->bind(1, std::string(id));
  return found->executeStep();
}

bool HasNonce(SqliteConnection& sqlite, absl::string_view nonce) {
  if (nonce.empty()) return false;
  const CachedStatement found(sqlite, "SELECT 1 FROM jobs WHERE nonce != '' AND nonce = ?");
  found->bind(1, std::string(nonce));
  return found->executeStep();
}

int64_t LastLauncherEvent(SqliteConnection& sqlite, absl::string_view allocation, int node) {
  const CachedStatement last(sqlite,
                             "SELECT coalesce(max(sequence), 0) FROM launcher_events "
                             "WHERE allocation = ? AND node = ?");
  last->bind(1, std::string(allocation));
  last->bind(2, node);
  last->executeStep();
  return last->getColumn(0).getInt64();
}

}  // namespace tutti::store
