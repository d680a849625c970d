// JobFiles reads, receives and removes the files of a job's folder: `logs/` (see JobLogs) and
// `outputs/`, what launchers sent. What they send of an allocation that still runs is below
// `running/ALLOCATION/` until it has ended, apart from what is kept. Where a function has
// `running`, that allocation's files count too, "" for none; of two of one name the one that came
// last does. Names come from outside: a path that is absolute, has a "." or
// ".." part, a NUL or an empty part, or passes through a link, is refused. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/threads/janitor.h"
#include "http/file_batch.h"
#include "platform/service/results/incoming_file.h"
#include "platform/service/results/staging_folder.h"

namespace tutti::service {

struct JobFile {
  std::string path;  // "outputs/model/model.json", relative to the job's folder
  uint64_t bytes = 0;
};

class JobFiles {
 public:
  // Takes the folder that has those of all jobs.
  explicit JobFiles(const std::filesystem::path& directory)
      : directory_(directory), staging_(directory) {}

  // Returns the folder of a job; the job exists and its id is safe as a file name.
  std::filesystem::path FolderOf(absl::string_view job) const;
  // Logs and outputs by name; none if the job has none yet.
  absl::StatusOr<std::vector<JobFile>> List(absl::string_view job,
                                            absl::string_view running = "") const;
  // Finds a file; InvalidArgument for an unsafe path, NotFound if it is no file that List names.
  absl::StatusOr<std::filesystem::path> Find(absl::string_view job, absl::string_view path,
                                             absl::string_view running = "") const;
  // Marks a job's results as used, where `path` is one. Retention asks for it.
  void NoteUse(absl::string_view job, absl::string_view path) const;
  // Begins to receive a file; `path` begins with "outputs/", or with "logs/" and is none of
  // JobLogs' own. An older file of that name is replaced by Commit. With `running` it is one of
  // that allocation, here and below.
  absl::StatusOr<std::unique_ptr<IncomingFile>> Receive(absl::string_view job,
                                                        absl::string_view path,
                                                        absl::string_view running = "") const;
  // Receives small ones, together: what became of each, in their order. An error of the disk is one
  // of all: any number of them may be in place then. `move` gives each its name.
  absl::StatusOr<std::vector<absl::Status>> ReceiveAll(
      absl::string_view job, const std::vector<http::BatchFile>& files,
      absl::string_view running = "", const MoveResult& move = MoveIntoPlace) const;
  // Removes what an allocation that runs has sent and has no longer: all but `paths` (PathAsSent),
  // as they were up to `age` ago. What came since then, or shortly before, stays.
  void KeepOfRunning(absl::string_view job, absl::string_view allocation,
                     const std::set<std::string>& paths, absl::Duration age) const;
  // Has what an allocation sent while it ran removed; call it once it has ended.
  void RemoveRunning(absl::string_view job, absl::string_view allocation,
                     base::Janitor& janitor) const;

  // Delete in two steps around the store's own, so that a crash between leaves no half: Hide,
  // then the store forgets the job, then Remove. Restore takes Hide back.
  absl::Status Hide(absl::string_view job) const;
  absl::Status Restore(absl::string_view job) const;
  // Takes the hidden folder away for good; it is removed by and by.
  absl::Status Remove(absl::string_view job, base::Janitor& janitor) const;
  // Has removed what an earlier process took away so and did not get to remove, what it was
  // receiving, and what allocations sent while they ran that are over.
  void ResumeRemoval(base::Janitor& janitor,
                     const std::function<bool(const std::string& allocation)>& is_over) const;
  // Returns the jobs that are hidden: a delete was interrupted.
  std::vector<std::string> Hidden() const;

  // Take "logs" or "outputs" of a job alone away, in two steps: Retire, then the store notes it,
  // then RemoveRetired. OK if there is no such folder.
  absl::Status Retire(absl::string_view job, absl::string_view part) const;
  absl::Status RemoveRetired(absl::string_view job, absl::string_view part,
                             base::Janitor& janitor) const;
  // Returns the jobs and parts of which the second step has not been taken.
  std::vector<std::pair<std::string, std::string>> Retired() const;

 private:
  // Returns the folder of what the allocation sends while it runs; of "" the job's own.
  std::filesystem::path FolderOf(absl::string_view job, absl::string_view running) const;
  // Returns where a result of that name goes; InvalidArgument as Receive has it.
  absl::StatusOr<std::filesystem::path> PlaceOf(absl::string_view job, absl::string_view path,
                                                absl::string_view running) const;
  std::filesystem::path RetiredFolder(absl::string_view job, absl::string_view part) const;

  std::filesystem::path directory_;
  StagingFolder staging_;
};

// Checks that "a/b.txt" is a relative path that stays below its folder; else InvalidArgument.
absl::Status CheckRelativePath(absl::string_view path);

}  // namespace tutti::service
