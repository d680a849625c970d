// These functions convert the values of store.h to rows of the database and back. Only the store
// itself uses them; every function runs within the caller's transaction and throws
// SQLite::Exception when SQLite fails.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "platform/store/database.h"
#include "platform/store/store.h"

namespace tutti::store {

// SELECT … FROM job_states s JOIN jobs j JOIN events e: every job with its last event `e`; WHERE is
// the caller's.
extern const char kSelectRecord[];
// "SELECT …" of the same, without its spec and its file, which stay empty; more columns and FROM
// are the caller's. kRecordColumns is how many these are.
extern const char kSelectBareRecord[];
inline constexpr int kRecordColumns = 18;

// Reads the current row of a statement that begins with one of these. DataLoss names a job that is
// damaged.
absl::StatusOr<JobRecord> ReadRecord(SQLite::Statement& row);
absl::Status ReadRecords(SQLite::Statement& rows, std::vector<JobRecord>& records);
absl::StatusOr<JobRecord> SelectJob(SQLite::Database& sqlite, absl::string_view id);
// Selects the job; NotFound if there is none.
absl::StatusOr<JobRecord> SelectJobOfNonce(SQLite::Database& sqlite, absl::string_view nonce);
bool HasJob(SqliteConnection& sqlite, absl::string_view id);
bool HasNonce(SqliteConnection& sqlite, absl::string_view nonce);
absl::Status NoJob(absl::string_view id);
// Returns the sequence that the job got.
int64_t InsertRow(SqliteConnection& sqlite, const Job& job);

// SELECT … FROM events; WHERE is the caller's.
extern const char kSelectEvent[];

// Reads the current row of a statement that begins with kSelectEvent.
absl::StatusOr<Event> ReadEvent(SQLite::Statement& row);
// Returns the sequence that the event got. The job's row in job_states follows.
int64_t InsertEvent(SqliteConnection& sqlite, absl::string_view job_id, const Event& event);
// Returns the last event of a job, of which its number and state are read.
absl::StatusOr<Event> LastStep(SqliteConnection& sqlite, absl::string_view job_id);

// Returns the highest number that is there, 0 if none.
int64_t LastLauncherEvent(SqliteConnection& sqlite, absl::string_view allocation, int node);

}  // namespace tutti::store
