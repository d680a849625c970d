// These functions read and write the rows of sweeps' trials, which are narrow, so that a sweep of
// thousands is shown without its trials' specs and logs. A row is made with its trial's job; once
// the trial has ended and all that it has reported was read it is `known`, and `ranked` if it is
// one of those of which the best is chosen. Only the store itself uses them, as it does rows.h.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/store/database.h"
#include "platform/store/store.h"

namespace tutti::store {

// Inserts the row of a trial whose job has that sequence.
void InsertTrial(SqliteConnection& sqlite, int64_t sequence, const Job& trial);
absl::Status SelectTrials(SqliteConnection& sqlite, const TrialFilter& filter,
                          std::vector<TrialRecord>& trials);
std::map<JobState, int64_t> CountStates(SqliteConnection& sqlite, absl::string_view parent);
void UpdateTrials(SqliteConnection& sqlite, const std::vector<TrialOutcome>& trials);
std::vector<UnreadTrial> SelectUnreadTrials(SqliteConnection& sqlite, int64_t after, int limit);

}  // namespace tutti::store
