#include "platform/store/log_rows.h"

#include <array>
#include <string>

namespace tutti::store {
namespace {

constexpr std::array kLogsStates = {LogsNote::State::kPending, LogsNote::State::kStored,
                                    LogsNote::State::kGivenUp};

// Another version's word counts as the end: what it means is not known here.
LogsNote::State LogsStateFrom(const std::string& name) {
  for (const LogsNote::State state : kLogsStates) {
    if (name == Name(state)) return state;
  }
  return LogsNote::State::kGivenUp;
}

}  // namespace

absl::string_view Name(LogsNote::State state) {
  switch (state) {
    case LogsNote::State::kPending:
      return "pending";
    case LogsNote::State::kStored:
      return "stored";
    case LogsNote::State::kGivenUp:
      return "given_up";
  }
  return "pending";
}

void InsertPendingLogs(SqliteConnection& sqlite, int64_t sequence, absl::Time created) {
  const CachedStatement insert(sqlite, "INSERT INTO kept_logs VALUES (?, 'pending', '', ?)");
  insert->bind(1, sequence);
  insert->bind(2, absl::ToUnixMicros(created));
  insert->exec();
}

bool UpdateLogs(SqliteConnection& sqlite, int64_t sequence, const LogsNote& note) {
  const CachedStatement update(
      sqlite, "UPDATE kept_logs SET state = ?2, reason = ?3, time_us = ?4 WHERE job = ?1");
  update->bind(1, sequence);
  update->bind(2, std::string(Name(note.state)));
  update->bind(3, note.reason);
  update->bind(4, absl::ToUnixMicros(note.time));
  return update->exec() > 0;
}

std::optional<LogsNote> SelectLogs(SqliteConnection& sqlite, absl::string_view job_id) {
  const CachedStatement rows(sqlite,
                             "SELECT l.state, l.reason, l.time_us FROM jobs j "
                             "JOIN kept_logs l ON l.job = j.sequence WHERE j.id = ?");
  rows->bind(1, std::string(job_id));
  if (!rows->executeStep()) return std::nullopt;
  return LogsNote{.state = LogsStateFrom(rows->getColumn(0).getString()),
                  .reason = rows->getColumn(1).getString(),
                  .time = absl::FromUnixMicros(rows->getColumn(2).getInt64())};
}

std::vector<EndedJob> SelectPendingLogs(SqliteConnection& sqlite) {
  std::vector<EndedJob> jobs;
  const CachedStatement rows(sqlite,
                             "SELECT j.id, l.job, e.time_us FROM kept_logs l "
                             "JOIN job_states s ON s.job = l.job JOIN jobs j ON j.sequence = l.job "
                             "JOIN events e ON e.sequence = s.last_event "
                             "WHERE l.state = 'pending' "
                             "AND s.state IN ('Completed', 'Failed', 'Canceled') ORDER BY l.job");
  while (rows->executeStep()) {
    jobs.push_back({rows->getColumn(0).getString(), rows->getColumn(1).getInt64(),
                    absl::FromUnixMicros(rows->getColumn(2).getInt64())});
  }
  return jobs;
}

}  // namespace tutti::store
