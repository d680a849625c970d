#include "platform/store/trial_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "platform/store/rows.h"

namespace tutti::store {
namespace {

// The order of these joins is that of the loops: CROSS JOIN has SQLite keep it.
constexpr char kByNumber[] =
    ", t.given, t.cost, t.known FROM job_states s CROSS JOIN jobs j ON j.sequence = s.job "
    "CROSS JOIN events e ON e.sequence = s.last_event LEFT JOIN trials t ON t.job = s.job "
    "WHERE s.job IN (";
constexpr char kByCost[] =
    ", t.given, t.cost, t.known FROM trials t CROSS JOIN job_states s ON s.job = t.job "
    "CROSS JOIN jobs j ON j.sequence = t.job CROSS JOIN events e ON e.sequence = s.last_event "
    "WHERE t.sweep = (SELECT sequence FROM jobs WHERE id = ?3) AND t.ranked "
    "AND (t.cost, t.job) > (?4, ?1) ORDER BY t.cost, t.job LIMIT ?2";

// The sequences of a page by number. For each state as many are read as the page may hold, so that
// it takes as long among few trials as among many.
std::string PageByNumber(const std::vector<JobState>& states) {
  constexpr char kBehind[] = "SELECT job FROM job_states WHERE parent = ?3 AND job > ?1";
  constexpr char kPage[] = " ORDER BY job LIMIT ?2";
  if (states.empty()) return absl::StrCat(kBehind, kPage);
  std::vector<std::string> parts;
  for (const JobState state : std::set<JobState>(states.begin(), states.end())) {
    parts.push_back(
        absl::StrCat("SELECT * FROM (", kBehind, " AND state = '", Name(state), "'", kPage, ")"));
  }
  return absl::StrCat("SELECT job FROM (", absl::StrJoin(parts, " UNION ALL "), ")", kPage);
}

std::string Query(const TrialFilter& filter) {
  if (filter.order == TrialFilter::Order::kBest) return absl::StrCat(kSelectBareRecord, kByCost);
  return absl::StrCat(kSelectBareRecord, kByNumber, PageByNumber(filter.states),
                      ") ORDER BY s.job");
}

std::vector<std::string> ValuesFrom(const std::string& given) {
  std::vector<std::string> values;
  const auto list = nlohmann::json::parse(given, nullptr, false);
  for (const auto& value : list) {
    values.push_back(value.is_string() ? value.get<std::string>() : "");
  }
  return values;
}

}  // namespace

void InsertTrial(SqliteConnection& sqlite, int64_t sequence, const Job& trial) {
  const CachedStatement insert(sqlite,
                               "INSERT INTO trials (job, sweep, given) "
                               "VALUES (?, (SELECT sequence FROM jobs WHERE id = ?), ?)");
  insert->bind(1, sequence);
  insert->bind(2, trial.parent);
  insert->bind(3, nlohmann::json(*trial.trial_values)
                      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  insert->exec();
}

absl::Status SelectTrials(SqliteConnection& sqlite, const TrialFilter& filter,
                          std::vector<TrialRecord>& trials) {
  SQLite::Statement rows(sqlite, Query(filter));
  rows.bind(1, filter.after);
  rows.bind(2, std::max(filter.limit, 1));
  rows.bind(3, filter.sweep);
  if (filter.order == TrialFilter::Order::kBest) rows.bind(4, filter.after_cost);
  while (rows.executeStep()) {
    TrialRecord& trial = trials.emplace_back();
    TUTTI_ASSIGN_OR_RETURN(trial.job, ReadRecord(rows));
    trial.values = ValuesFrom(rows.getColumn(kRecordColumns).getString());
    const SQLite::Column cost = rows.getColumn(kRecordColumns + 1);
    if (!cost.isNull()) trial.cost = cost.getDouble();
    trial.known = rows.getColumn(kRecordColumns + 2).getInt() != 0;
  }
  return absl::OkStatus();
}

std::map<JobState, int64_t> CountStates(SqliteConnection& sqlite, absl::string_view parent) {
  std::map<JobState, int64_t> counts;
  SQLite::Statement count(sqlite, "SELECT count(*) FROM job_states WHERE parent = ? AND state = ?");
  for (const JobState state : kJobStates) {
    count.reset();
    count.bind(1, std::string(parent));
    count.bind(2, std::string(Name(state)));
    count.executeStep();
    const int64_t jobs = count.getColumn(0).getInt64();
    if (jobs > 0) counts[state] = jobs;
  }
  return counts;
}

void UpdateTrials(SqliteConnection& sqlite, const std::vector<TrialOutcome>& trials) {
  const CachedStatement update(
      sqlite,
      "UPDATE trials SET known = 1, cost = ?2, ranked = ?2 IS NOT NULL AND "
      "(SELECT state FROM job_states s WHERE s.job = trials.job) = 'Completed' "
      "WHERE job = (SELECT sequence FROM jobs WHERE id = ?1)");
  for (const TrialOutcome& trial : trials) {
    update->reset();
    update->bind(1, trial.job);
    if (trial.cost) {
      update->bind(2, *trial.cost);
    } else {
      update->bind(2);  // NULL
    }
    update->exec();
  }
}

std::vector<UnreadTrial> SelectUnreadTrials(SqliteConnection& sqlite, int64_t after, int limit) {
  SQLite::Statement rows(
      sqlite,
      "SELECT j.id, p.id, t.job FROM trials t INDEXED BY trials_to_read "
      "CROSS JOIN jobs j ON j.sequence = t.job CROSS JOIN jobs p ON p.sequence = t.sweep "
      "CROSS JOIN job_states s ON s.job = t.sweep "
      "WHERE NOT t.known AND t.job > ?1 AND s.state IN ('Completed', 'Failed', 'Canceled') "
      "ORDER BY t.job LIMIT ?2");
  rows.bind(1, after);
  rows.bind(2, limit);
  std::vector<UnreadTrial> trials;
  while (rows.executeStep()) {
    trials.push_back({.job = rows.getColumn(0).getString(),
                      .sweep = rows.getColumn(1).getString(),
                      .sequence = rows.getColumn(2).getInt64()});
  }
  return trials;
}

}  // namespace tutti::store
