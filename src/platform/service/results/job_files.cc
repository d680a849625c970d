#include "platform/service/results/job_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/machine/folder.h"
#include "base/status.h"
#include "platform/service/results/incoming_batch.h"
#include "spec/json/question.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kHiddenPrefix = ".deleted-";
constexpr absl::string_view kGonePrefix = ".gone-";
constexpr absl::string_view kRetiredPrefix = ".retired-";
constexpr absl::string_view kIndex = "logs/arrivals";
constexpr absl::Duration kDoubtAboutClocks = absl::Minutes(1);

// No part of `path` below `folder` is a link, so it ends where it says.
bool PassesThroughALink(fs::path folder, absl::string_view path) {
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    folder /= std::string(part);
    std::error_code ignored;
    if (fs::is_symlink(fs::symlink_status(folder, ignored))) return true;
  }
  return false;
}

absl::Status Rename(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error || error == std::errc::no_such_file_or_directory) return absl::OkStatus();
  return base::ErrnoStatus(absl::StrCat("rename ", from.native()), error.value());
}

void ListBelow(const fs::path& folder, const char* part, std::vector<JobFile>& files) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder / part, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (IsArriving(entry->path().filename().native())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_symlink(ignored) || !entry->is_regular_file(ignored)) continue;
    const uint64_t bytes = entry->file_size(ignored);
    if (ignored) continue;  // it was replaced just now
    files.push_back({.path = entry->path().lexically_relative(folder).native(), .bytes = bytes});
  }
}

bool IsFileBelow(const fs::path& folder, absl::string_view path) {
  std::error_code ignored;
  return !PassesThroughALink(folder, path) &&
         fs::is_regular_file(folder / std::string(path), ignored);
}

// Returns whether `file` came after `other`.
bool IsNewer(const fs::path& file, const fs::path& other) {
  std::error_code error;
  const auto time = fs::last_write_time(file, error);
  if (error) return false;
  const auto other_time = fs::last_write_time(other, error);
  return error || time > other_time;
}

// Adds files to those of another folder, in the place of those of the same name that came before.
void TakeNewer(const fs::path& folder, std::vector<JobFile> added, const fs::path& other,
               std::vector<JobFile>& files) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < files.size(); ++i) places[files[i].path] = i;
  for (JobFile& file : added) {
    const auto known = places.find(file.path);
    if (known == places.end()) {
      files.push_back(std::move(file));
    } else if (IsNewer(folder / file.path, other / file.path)) {
      files[known->second] = std::move(file);
    }
  }
}

}  // namespace

absl::Status CheckRelativePath(absl::string_view path) {
  const bool safe = !path.empty() && path.size() <= 4096 && !absl::StrContains(path, '\0') && [&] {
    for (const absl::string_view part : absl::StrSplit(path, '/')) {
      if (part.empty() || part == "." || part == ".." || part.size() > 255) {
        return false;
      }
    }
    return true;
  }();
  if (safe) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", path.substr(0, 200),
                   "\" is no path of a file in the job's folder: it must be relative, without "
                   "empty parts, \".\" and \"..\""));
}

fs::path JobFiles::FolderOf(absl::string_view job) const { return directory_ / std::string(job); }

fs::path JobFiles::FolderOf(absl::string_view job, absl::string_view running) const {
  return running.empty() ? FolderOf(job) : FolderOf(job) / "running" / std::string(running);
}

absl::StatusOr<std::vector<JobFile>> JobFiles::List(absl::string_view job,
                                                    absl::string_view running) const {
  std::vector<JobFile> files;
  for (const char* part : {"logs", "outputs"}) ListBelow(FolderOf(job), part, files);
  if (!running.empty()) {
    std::vector<JobFile> more;
    for (const char* part : {"logs", "outputs"}) ListBelow(FolderOf(job, running), part, more);
    TakeNewer(FolderOf(job, running), std::move(more), FolderOf(job), files);
  }
  std::erase_if(files, [](const JobFile& file) { return file.path == kIndex; });
  std::sort(files.begin(), files.end(),
            [](const JobFile& a, const JobFile& b) { return a.path < b.path; });
  return files;
}

absl::StatusOr<fs::path> JobFiles::Find(absl::string_view job, absl::string_view path,
                                        absl::string_view running) const {
  TUTTI_RETURN_IF_ERROR(CheckRelativePath(path));
  const bool may_be =
      (absl::StartsWith(path, "logs/") || absl::StartsWith(path, "outputs/")) && path != kIndex;
  const fs::path kept = FolderOf(job) / std::string(path);
  const bool is_kept = may_be && IsFileBelow(FolderOf(job), path);
  if (may_be && !running.empty() && IsFileBelow(FolderOf(job, running), path)) {
    const fs::path so_far = FolderOf(job, running) / std::string(path);
    if (!is_kept || IsNewer(so_far, kept)) return so_far;
  }
  if (is_kept) return kept;
  return absl::NotFoundError(absl::StrCat("job ", job, " has no file ", path));
}

void JobFiles::NoteUse(absl::string_view job, absl::string_view path) const {
  if (absl::StartsWith(path, "outputs/")) base::Touch(FolderOf(job));
}

absl::StatusOr<fs::path> JobFiles::PlaceOf(absl::string_view job, absl::string_view path,
                                           absl::string_view running) const {
  TUTTI_RETURN_IF_ERROR(CheckRelativePath(path));
  const bool own_log = absl::StartsWith(path, "logs/rank-") || absl::StartsWith(path, kIndex);
  const bool is_result =
      absl::StartsWith(path, "outputs/") || (absl::StartsWith(path, "logs/") && !own_log);
  const fs::path folder = FolderOf(job, running);
  if (!is_result || PassesThroughALink(folder, path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", path, "\": results go to outputs/ or logs/ of the job"));
  }
  return folder / std::string(path);
}

absl::StatusOr<std::unique_ptr<IncomingFile>> JobFiles::Receive(absl::string_view job,
                                                                absl::string_view path,
                                                                absl::string_view running) const {
  TUTTI_ASSIGN_OR_RETURN(const fs::path place, PlaceOf(job, path, running));
  return IncomingFile::Create(place, staging_, /*hashed=*/false);
}

absl::StatusOr<std::vector<absl::Status>> JobFiles::ReceiveAll(
    absl::string_view job, const std::vector<http::BatchFile>& files, absl::string_view running,
    const MoveResult& move) const {
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<IncomingBatch> batch,
                         IncomingBatch::Create(staging_));
  std::vector<absl::Status> statuses(files.size());
  std::vector<size_t> added;
  for (size_t i = 0; i < files.size(); ++i) {
    const auto place = PlaceOf(job, files[i].name, running);
    statuses[i] = place.ok() ? batch->Add(*place, files[i].bytes) : place.status();
    if (absl::IsResourceExhausted(statuses[i])) return statuses[i];
    if (statuses[i].ok()) added.push_back(i);
  }
  TUTTI_ASSIGN_OR_RETURN(const std::vector<absl::Status> kept, batch->Commit(move));
  for (size_t i = 0; i < added.size(); ++i) {
    if (absl::IsResourceExhausted(kept[i])) return kept[i];
    statuses[added[i]] = kept[i];
  }
  return statuses;
}

// The clock of the disk may be a server's.
void JobFiles::KeepOfRunning(absl::string_view job, absl::string_view allocation,
                             const std::set<std::string>& paths, absl::Duration age) const {
  const fs::path folder = FolderOf(job, allocation);
  const auto before =
      fs::file_time_type::clock::now() - absl::ToChronoNanoseconds(age + kDoubtAboutClocks);
  std::vector<JobFile> files;
  for (const char* part : {"logs", "outputs"}) ListBelow(folder, part, files);
  for (const JobFile& file : files) {
    std::error_code error;
    const auto came = fs::last_write_time(folder / file.path, error);
    if (error || came >= before || paths.contains(spec::PathAsSent(file.path))) continue;
    fs::remove(folder / file.path, error);
  }
}

// It goes to where a process that is started anew looks for what is left to remove.
void JobFiles::RemoveRunning(absl::string_view job, absl::string_view allocation,
                             base::Janitor& janitor) const {
  const fs::path gone = directory_ / absl::StrCat(kGonePrefix, "running-", allocation);
  std::error_code error;
  fs::rename(FolderOf(job, allocation), gone, error);
  if (error) return;  // there is none, or it goes with the job
  fs::remove(FolderOf(job) / "running", error);
  janitor.Remove(gone);
}

absl::Status JobFiles::Hide(absl::string_view job) const {
  return Rename(FolderOf(job), FolderOf(absl::StrCat(kHiddenPrefix, job)));
}

absl::Status JobFiles::Restore(absl::string_view job) const {
  return Rename(FolderOf(absl::StrCat(kHiddenPrefix, job)), FolderOf(job));
}

// Under another name yet: a job that comes under this one may be deleted as well meanwhile.
absl::Status JobFiles::Remove(absl::string_view job, base::Janitor& janitor) const {
  return janitor.RenameAndRemove(FolderOf(absl::StrCat(kHiddenPrefix, job)), kGonePrefix);
}

void JobFiles::ResumeRemoval(
    base::Janitor& janitor,
    const std::function<bool(const std::string& allocation)>& is_over) const {
  staging_.RemoveEarlier(janitor);
  for (const std::string& name : base::NamesIn(directory_)) {
    if (absl::StartsWith(name, kGonePrefix)) {
      janitor.Remove(directory_ / name);
      continue;
    }
    for (const std::string& allocation : base::NamesIn(directory_ / name / "running")) {
      if (is_over(allocation)) RemoveRunning(name, allocation, janitor);
    }
  }
}

std::vector<std::string> JobFiles::Hidden() const {
  std::vector<std::string> jobs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().native();
    absl::string_view job = name;
    if (absl::ConsumePrefix(&job, kHiddenPrefix)) jobs.emplace_back(job);
  }
  return jobs;
}

fs::path JobFiles::RetiredFolder(absl::string_view job, absl::string_view part) const {
  return directory_ / absl::StrCat(kRetiredPrefix, part, "-", job);
}

// The folder's time is that of its last use, which this is none of.
absl::Status JobFiles::Retire(absl::string_view job, absl::string_view part) const {
  const fs::path folder = FolderOf(job);
  struct stat before = {};
  const bool known = ::stat(folder.c_str(), &before) == 0;
  TUTTI_RETURN_IF_ERROR(Rename(folder / std::string(part), RetiredFolder(job, part)));
  const timespec times[2] = {before.st_atim, before.st_mtim};
  if (known) ::utimensat(AT_FDCWD, folder.c_str(), times, 0);
  return absl::OkStatus();
}

absl::Status JobFiles::RemoveRetired(absl::string_view job, absl::string_view part,
                                     base::Janitor& janitor) const {
  return janitor.RenameAndRemove(RetiredFolder(job, part), kGonePrefix);
}

std::vector<std::pair<std::string, std::string>> JobFiles::Retired() const {
  std::vector<std::pair<std::string, std::string>> retired;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    const std::string name = entry.path().filename().native();
    absl::string_view rest = name;
    if (!absl::ConsumePrefix(&rest, kRetiredPrefix)) continue;
    const std::pair<std::string, std::string> parts = absl::StrSplit(rest, absl::MaxSplits('-', 1));
    retired.emplace_back(parts.second, parts.first);
  }
  return retired;
}

}  // namespace tutti::service
