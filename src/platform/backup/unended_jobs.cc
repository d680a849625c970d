#include "platform/backup/unended_jobs.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/backup/head.h"

namespace tutti::backup {
namespace {

using store::JobRecord;
using store::JobState;

// It has only been accepted; a step of a pipeline follows what runs, and ends with it.
absl::StatusOr<bool> WaitsForThisMachine(store::Store& store, const JobRecord& record) {
  const spec::JobSpec& spec = record.job.spec;
  if (record.last.state != JobState::kQueued || !record.job.parent.empty()) return false;
  if (spec.kind != spec::JobKind::kCommand || spec.compute != "local") return false;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::Event> events, store.EventsOf(record.job.id));
  return events.size() == 1;
}

store::Event EndOf(const JobRecord& record, absl::Time made, absl::Time now) {
  const std::string then =
      absl::StrCat("when the backup of ", ShownTime(made), " was made, which was restored here");
  // The clock of the machine that made the backup may have been ahead of this one's.
  store::Event end{.time = std::max(now, record.last.time), .detail = record.last.detail};
  if (record.last.state == JobState::kQueued) {
    end.state = JobState::kCanceled;
    end.reason = absl::StrCat("waited ", then,
                              ": it may have been begun since, so it was not begun again; submit "
                              "it again if it was not");
  } else {
    end.state = JobState::kFailed;
    end.reason =
        absl::StrCat("lost: had begun ", then, "; what became of it is not known to this service");
  }
  return end;
}

}  // namespace

absl::StatusOr<UnendedJobs> EndUnended(store::Store& store, absl::Time made, absl::Time now,
                                       bool keep_queue) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<JobRecord> records, store.NonTerminalJobs());
  UnendedJobs jobs;
  for (const JobRecord& record : records) {
    TUTTI_ASSIGN_OR_RETURN(const bool waits, WaitsForThisMachine(store, record));
    if (keep_queue && waits) {
      ++jobs.kept;
      continue;
    }
    const store::Event end = EndOf(record, made, now);
    TUTTI_RETURN_IF_ERROR(store.AppendEvent(record.job.id, record.last.sequence, end).status());
    ++(end.state == JobState::kFailed ? jobs.failed : jobs.canceled);
  }
  return jobs;
}

}  // namespace tutti::backup
