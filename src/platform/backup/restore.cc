#include "platform/backup/restore.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/process/held_folder.h"
#include "base/status.h"
#include "platform/backup/archive_reader.h"
#include "platform/backup/head.h"
#include "platform/backup/home_mounts.h"
#include "platform/backup/home_parts.h"
#include "platform/backup/work_folder.h"
#include "platform/store/database_copy.h"
#include "platform/store/store.h"
#include "spec/data/asset.h"

namespace tutti::backup {
namespace fs = std::filesystem;
namespace {

using store::JobRecord;
using store::JobState;

bool IsThere(const fs::path& home) {
  std::error_code error;
  return fs::directory_iterator(home, error) != fs::directory_iterator();
}

absl::Status CheckEmpty(const fs::path& home) {
  std::error_code error;
  const fs::directory_iterator first(home, error);
  if (error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  if (error) return base::ErrnoStatus(home.string(), error.value());
  if (first == fs::directory_iterator()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      home.string(), " is not empty (it has ", first->path().filename().string(),
      "): end its service and have its folder set aside (tutti restore --replace FILE), or restore "
      "into another folder (tutti --home FOLDER restore FILE)"));
}

// Holds the folder that is to be replaced, so that no service begins there meanwhile.
absl::StatusOr<base::UniqueFd> HoldReplaced(const fs::path& home) {
  std::error_code error;
  if (!fs::exists(home / kDatabase, error)) {
    return absl::FailedPreconditionError(
        absl::StrCat(home.string(), " is no service's folder (it has no ", kDatabase,
                     "): restore into another (tutti --home FOLDER restore FILE)"));
  }
  TUTTI_ASSIGN_OR_RETURN(base::UniqueFd held, base::HoldFolder(home));
  TUTTI_RETURN_IF_ERROR(CheckNoMounts(home));  // it says to unmount: not below a service that runs
  return held;
}

// Moves the paths of assets into the service's folder, which may have been another one.
absl::Status MoveAssets(const fs::path& folder, const std::string& from, const fs::path& to) {
  const std::string old = absl::StrCat(from, "/assets/");
  for (const spec::AssetKind kind :
       {spec::AssetKind::kData, spec::AssetKind::kEnvironment, spec::AssetKind::kComponent}) {
    std::error_code error;
    if (!fs::exists(spec::AssetsFile(folder, kind), error)) continue;
    TUTTI_ASSIGN_OR_RETURN(const spec::Assets assets, spec::ReadAssets(folder, kind));
    spec::Assets moved(kind);
    for (const auto& [name, versions] : assets.assets()) {
      for (spec::Asset asset : versions) {
        if (absl::StartsWith(asset.path, old)) {
          asset.path = (to / "assets" / asset.path.substr(old.size())).string();
        }
        TUTTI_RETURN_IF_ERROR(moved.Add(std::move(asset)).status());
      }
    }
    TUTTI_RETURN_IF_ERROR(spec::WriteAssets(folder, moved));
  }
  return absl::OkStatus();
}

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

// Ends the jobs that had not ended when the backup was made, at `made`. The service that was saved
// may have gone on with them, and its launchers may still run: none of them is ever begun here
// again. With `keep_queue`, which says that the other service has begun nothing since and does not
// run any more, jobs that waited for this machine's nodes wait on. Those in a cluster's queue do
// not: it may have begun them all the same.
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

absl::Status TakeOverJobs(const fs::path& database, const RestoreOptions& options,
                          RestoreReport& report) {
  TUTTI_RETURN_IF_ERROR(store::SkipNumbersGivenSince(database));
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, store::Store::Open(database));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<int64_t> all,
                         store->Sequences({.limit = std::numeric_limits<int>::max()}));
  report.jobs = static_cast<int>(all.size());
  TUTTI_ASSIGN_OR_RETURN(report.unended,
                         EndUnended(*store, report.head.made, options.now, options.keep_queue));
  return absl::OkStatus();
}

absl::Status SyncAll(const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd fd, base::Open(folder, O_RDONLY | O_DIRECTORY));
  return ::syncfs(fd.get()) == 0 ? absl::OkStatus() : base::ErrnoStatus(folder.string());
}

fs::path WorkFolderOf(const fs::path& home) {
  return home.parent_path() / absl::StrCat(".", home.filename().string(), ".tutti-restore");
}

}  // namespace

absl::StatusOr<RestoreReport> Restore(const RestoreOptions& options) {
  fs::path home = options.home.has_filename() ? options.home : options.home.parent_path();
  TUTTI_RETURN_IF_ERROR(base::Open(options.file, O_RDONLY).status());
  const bool replaces = options.replace && IsThere(home);
  base::UniqueFd held;
  if (replaces) {
    std::error_code error;
    home = fs::canonical(home, error);  // it may be a link to it
    if (error) return base::ErrnoStatus(options.home.string(), error.value());
    TUTTI_ASSIGN_OR_RETURN(held, HoldReplaced(home));
  } else {
    TUTTI_RETURN_IF_ERROR(CheckEmpty(home));
  }
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(home.parent_path()));
  TUTTI_ASSIGN_OR_RETURN(
      WorkFolder work,
      WorkFolder::Open(WorkFolderOf(home),
                       absl::StrCat(home.string(), " is being restored by another")));
  RestoreReport report;
  TUTTI_ASSIGN_OR_RETURN(const std::string head,
                         UnpackArchive(options.file, work.path(), kHeadName));
  auto read = HeadFromJson(head);
  TUTTI_RETURN_IF_ERROR(base::Annotate(read.status(), options.file.string()));
  report.head = *std::move(read);
  TUTTI_RETURN_IF_ERROR(MoveAssets(work.path(), report.head.home, home));
  TUTTI_RETURN_IF_ERROR(TakeOverJobs(work.path() / kDatabase, options, report));
  TUTTI_RETURN_IF_ERROR(SyncAll(work.path()));
  if (!replaces) {
    TUTTI_RETURN_IF_ERROR(work.MoveTo(home));
    return report;
  }
  TUTTI_ASSIGN_OR_RETURN(
      report.aside,
      work.TakePlaceOf(home, absl::FormatTime("%Y%m%d-%H%M%S", options.now, absl::LocalTimeZone()),
                       options.on_step));
  return report;
}

}  // namespace tutti::backup
