// These functions read and write the notes of what became of jobs' logs that go to a store. A note
// is made with its job, in the same transaction, so that no crash between the job's end and what
// follows loses that its logs are to be brought. Only the store itself uses them, as it does
// rows.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "platform/store/database.h"
#include "platform/store/store.h"

namespace tutti::store {

// Inserts the note of the job that has that sequence.
void InsertPendingLogs(SqliteConnection& sqlite, int64_t sequence, absl::Time created);
// Returns whether that job had a note to replace.
bool UpdateLogs(SqliteConnection& sqlite, int64_t sequence, const LogsNote& note);
std::optional<LogsNote> SelectLogs(SqliteConnection& sqlite, absl::string_view job_id);
std::vector<EndedJob> SelectPendingLogs(SqliteConnection& sqlite);

}  // namespace tutti::store
