#include "platform/backup/backup.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "platform/backup/archive_writer.h"
#include "platform/backup/full_disk.h"
#include "platform/backup/head.h"
#include "platform/backup/home_parts.h"
#include "platform/backup/work_folder.h"
#include "platform/store/database_copy.h"
#include "platform/store/store.h"
#include "spec/data/asset.h"
#include "spec/data/home_list.h"
#include "spec/site/site.h"

namespace tutti::backup {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kLargestKeyFile = 64 << 10;
constexpr int kCopies = 10;
constexpr char kWorkFolder[] = ".tutti-backup";

struct CopiedJobs {
  int count = 0;
  int secrets = 0;
  std::set<std::string> snapshots;  // "sha256:…", of those that have not ended
  std::vector<std::string> missing_code = {};
};

void NoteSnapshots(const spec::JobSpec& job, const std::string& snapshot,
                   std::set<std::string>& snapshots) {
  if (!snapshot.empty()) snapshots.insert(snapshot);
  for (const spec::Step& step : job.steps) NoteSnapshots(step.job, step.snapshot, snapshots);
}

// Opening it has SQLite check the copy.
absl::StatusOr<CopiedJobs> JobsIn(const fs::path& copy) {
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, store::Store::Open(copy));
  CopiedJobs jobs;
  TUTTI_ASSIGN_OR_RETURN(const std::vector<int64_t> all,
                         store->Sequences({.limit = std::numeric_limits<int>::max()}));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> live, store->NonTerminalJobs());
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::SealedSecret> secrets, store->Secrets());
  jobs.count = static_cast<int>(all.size());
  jobs.secrets = static_cast<int>(secrets.size());
  for (const store::JobRecord& record : live) {
    NoteSnapshots(record.job.spec, record.job.snapshot, jobs.snapshots);
  }
  return jobs;
}

// Returns where the key of the secrets is.
absl::StatusOr<fs::path> SecretKeyOf(const fs::path& home) {
  TUTTI_ASSIGN_OR_RETURN(const spec::Site site, spec::ReadSite(home));
  return spec::SecretKeyFile(site, home);
}

// The lists of assets and the files that belong to them are of one moment.
absl::Status AddParts(const fs::path& home, ArchiveWriter& writer) {
  // The key may lie beside what site.yml names. A site.yml that cannot be read names nothing.
  std::error_code no_key;
  const auto key = SecretKeyOf(home);
  if (key.ok()) writer.LeaveOut(fs::canonical(*key, no_key));
  std::vector<base::UniqueFd> locks;
  for (const spec::AssetKind kind :
       {spec::AssetKind::kData, spec::AssetKind::kEnvironment, spec::AssetKind::kComponent}) {
    TUTTI_ASSIGN_OR_RETURN(locks.emplace_back(), spec::LockList(spec::AssetsFile(home, kind)));
  }
  for (const std::string& part : PartsOf(home)) {
    std::error_code error;
    const fs::path real =
        fs::canonical(home / part, error);  // tls.pem may be the site's, by a link
    if (!error) TUTTI_RETURN_IF_ERROR(writer.Add(part, real));
  }
  return absl::OkStatus();
}

// Returns the lines of the key of the secrets, wherever site.yml says that it is.
absl::StatusOr<std::string> ReadSecretKey(const fs::path& home) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path file, SecretKeyOf(home));
  auto text = base::ReadFile(file, kLargestKeyFile);
  if (text.ok()) return text;
  return base::Annotate(text.status(), absl::StrCat("the key of the secrets, ", file.native()));
}

struct Copy {
  CopiedJobs jobs;
  std::string secret_key;  // that opens what is in it; "" if it is not asked for, or opens nothing
};

// Copies the database to `file`. A rotation puts a new key before the old ones, seals all secrets
// under it and drops those: where the key is the same before and after the copy was made, it opens
// what is in that, whatever the rotation has come to.
absl::StatusOr<Copy> CopyWithKey(const BackupOptions& options, const fs::path& file) {
  for (int attempt = 1; attempt <= kCopies; ++attempt) {
    const auto before = ReadSecretKey(options.home);
    TUTTI_RETURN_IF_ERROR(store::CopyDatabase(options.home / kDatabase, file));
    if (options.on_copied) options.on_copied();
    Copy copy;
    TUTTI_ASSIGN_OR_RETURN(copy.jobs, JobsIn(file));
    if (!options.with_secret_key || copy.jobs.secrets == 0) return copy;
    TUTTI_ASSIGN_OR_RETURN(copy.secret_key, ReadSecretKey(options.home));
    if (before.ok() && *before == copy.secret_key) return copy;
    for (const char* end : {"", "-wal", "-shm"}) {
      TUTTI_RETURN_IF_ERROR(base::RemoveTree(absl::StrCat(file.native(), end)));
    }
  }
  return absl::UnavailableError(
      absl::StrCat("the key of the secrets was replaced each time that the database was copied, ",
                   kCopies, " times: make the backup when no `tutti secret rotate` runs"));
}

// Returns those that are not there. Of jobs that have not ended they are kept.
absl::StatusOr<std::vector<std::string>> AddSnapshots(const fs::path& home,
                                                      const std::set<std::string>& snapshots,
                                                      ArchiveWriter& writer) {
  std::vector<std::string> missing;
  for (const std::string& snapshot : snapshots) {
    const std::string name =
        absl::StrCat(kSnapshots, "/", absl::StrReplaceAll(snapshot, {{":", "-"}}));
    std::error_code error;
    if (!fs::exists(home / name, error)) missing.push_back(snapshot);
    TUTTI_RETURN_IF_ERROR(writer.Add(name, home / name));
  }
  return missing;
}

// A hidden folder is of a job that is being deleted.
absl::Status AddResults(const fs::path& home, ArchiveWriter& writer) {
  std::set<std::string> jobs;
  std::error_code error;
  for (fs::directory_iterator at(home / kJobs, error), end; !error && at != end;
       at.increment(error)) {
    const std::string job = at->path().filename().string();
    if (job.front() != '.') jobs.insert(job);
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus((home / kJobs).string(), error.value());
  }
  for (const std::string& job : jobs) {
    TUTTI_RETURN_IF_ERROR(writer.Add(absl::StrCat(kJobs, "/", job), home / kJobs / job));
  }
  return absl::OkStatus();
}

// Adds what MLflow's clients have logged, if the service keeps it.
absl::Status AddTracking(const BackupOptions& options, const fs::path& copy,
                         ArchiveWriter& writer) {
  const absl::Status copied = store::CopyDatabase(options.home / kTracking, copy);
  if (absl::IsNotFound(copied)) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(copied);
  TUTTI_RETURN_IF_ERROR(writer.Add(kTracking, copy));
  if (!options.with_results) return absl::OkStatus();
  // After the database: each run whose files are there is in it, or its files came later.
  return writer.Add(kArtifacts, options.home / kArtifacts);
}

// Adds the registered models, if there are any, with their files, which nothing else keeps.
absl::Status AddModels(const fs::path& home, const fs::path& copy, ArchiveWriter& writer) {
  const absl::Status copied = store::CopyDatabase(home / kModels, copy);
  if (absl::IsNotFound(copied)) return absl::OkStatus();
  TUTTI_RETURN_IF_ERROR(copied);
  TUTTI_RETURN_IF_ERROR(writer.Add(kModels, copy));
  // After the database: the files of each version that is in it are there, or were deleted since.
  std::set<std::string> trees;
  std::error_code error;
  for (fs::directory_iterator at(home / kModelTrees, error), end; !error && at != end;
       at.increment(error)) {
    const std::string tree = at->path().filename().string();
    if (tree.front() != '.') trees.insert(tree);  // else it is being deleted
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return base::ErrnoStatus((home / kModelTrees).string(), error.value());
  }
  for (const std::string& tree : trees) {
    TUTTI_RETURN_IF_ERROR(
        writer.Add(absl::StrCat(kModelTrees, "/", tree), home / kModelTrees / tree));
  }
  return absl::OkStatus();
}

absl::Status AlreadyThere(const fs::path& file) {
  return absl::AlreadyExistsError(
      absl::StrCat(file.string(), " is there already: give the backup another name"));
}

absl::Status CheckPlaces(const BackupOptions& options) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(options.file, error))) return AlreadyThere(options.file);
  struct stat info = {};
  if (::stat((options.home / kDatabase).c_str(), &info) != 0) {
    return absl::NotFoundError(absl::StrCat(
        options.home.string(), " has no service's state (", kDatabase,
        "): nothing to save; --home or TUTTI_HOME say where the service keeps its own"));
  }
  if (info.st_uid == ::geteuid()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(options.home.string(), " is another user's (number ", info.st_uid,
                   "): save it as that one, who would else find files that are not theirs"));
}

// Returns what a backup takes at most: a copy of the database, and beside it the archive of that
// and of all that is added, which is smaller by what compression saves.
uint64_t MostBytes(const BackupOptions& options) {
  uint64_t bytes = 0;
  for (const char* name : {kDatabase, kTracking, kModels}) {
    const std::string database = (options.home / name).string();
    bytes += 2 * (BytesAt(database) + BytesAt(database + "-wal"));
  }
  for (const std::string& part : PartsOf(options.home)) bytes += BytesAt(options.home / part);
  bytes += BytesAt(options.home / kSnapshots) + BytesAt(options.home / kModelTrees);
  if (options.with_results) {
    bytes += BytesAt(options.home / kJobs) + BytesAt(options.home / kArtifacts);
  }
  return bytes;
}

absl::StatusOr<CopiedJobs> WriteArchive(const BackupOptions& options, const fs::path& copy,
                                        const fs::path& archive) {
  TUTTI_ASSIGN_OR_RETURN(Copy copied, CopyWithKey(options, copy));
  const CopiedJobs& jobs = copied.jobs;
  TUTTI_ASSIGN_OR_RETURN(const std::unique_ptr<ArchiveWriter> writer,
                         ArchiveWriter::Create(archive));
  const Head head{.version = options.version,
                  .home = options.home.string(),
                  .made = options.now,
                  .with_results = options.with_results};
  TUTTI_RETURN_IF_ERROR(writer->AddText(kHeadName, ToJson(head)));
  TUTTI_RETURN_IF_ERROR(writer->Add(kDatabase, copy));
  TUTTI_RETURN_IF_ERROR(AddParts(options.home, *writer));
  if (!copied.secret_key.empty()) {  // by the name that it has in a service's folder
    TUTTI_RETURN_IF_ERROR(writer->AddText(spec::kSecretKeyName, copied.secret_key));
  }
  TUTTI_ASSIGN_OR_RETURN(copied.jobs.missing_code,
                         AddSnapshots(options.home, jobs.snapshots, *writer));
  if (options.with_results) TUTTI_RETURN_IF_ERROR(AddResults(options.home, *writer));
  TUTTI_RETURN_IF_ERROR(AddTracking(options, copy.parent_path() / kTracking, *writer));
  TUTTI_RETURN_IF_ERROR(AddModels(options.home, copy.parent_path() / kModels, *writer));
  TUTTI_RETURN_IF_ERROR(writer->Finish());
  return jobs;
}

// In one step, and over nothing.
absl::Status Publish(const fs::path& archive, const fs::path& file) {
  if (::renameat2(AT_FDCWD, archive.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return AlreadyThere(file);
    if (errno != EINVAL) return base::ErrnoStatus(absl::StrCat("make ", file.string()));
    // A file system that cannot: NFS.
    std::error_code error;
    fs::create_hard_link(archive, file, error);
    if (error == std::errc::file_exists) return AlreadyThere(file);
    if (error) return base::ErrnoStatus(absl::StrCat("make ", file.string()), error.value());
  }
  const absl::Status synced = base::SyncDirectory(file.parent_path());
  if (!synced.ok()) ::unlink(file.c_str());  // what is said to have failed is not there
  return synced;
}

}  // namespace

absl::StatusOr<BackupReport> MakeBackup(const BackupOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckPlaces(options));
  const fs::path folder = options.file.parent_path();
  const std::optional<uint64_t> free = FreeBytes(folder);
  const auto explained = [&](const absl::Status& failure) {
    return ExplainFullDisk(failure, folder / kWorkFolder, free, [&] { return MostBytes(options); });
  };
  const auto work = WorkFolder::Open(
      folder / kWorkFolder, absl::StrCat("another backup is being written to ", folder.string()));
  if (!work.ok()) return explained(work.status());
  const fs::path archive = work->path() / "archive";
  const auto jobs = WriteArchive(options, work->path() / kDatabase, archive);
  if (!jobs.ok()) return explained(jobs.status());
  std::error_code error;
  const uintmax_t bytes = fs::file_size(archive, error);
  TUTTI_RETURN_IF_ERROR(explained(Publish(archive, options.file)));
  return BackupReport{.jobs = jobs->count,
                      .bytes = error ? 0 : bytes,
                      .secrets = jobs->secrets,
                      .missing_code = jobs->missing_code};
}

}  // namespace tutti::backup
