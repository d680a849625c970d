#include "platform/launch/outputs/earlier_files.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "platform/cache/fetched_home.h"
#include "platform/cache/node_cache.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/outputs/stored_files.h"
#include "platform/launch/staging/copy.h"
#include "platform/storage/input_request.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/storage_fault.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using storage::FaultSource;
using storage::ManifestEntry;
using storage::Operation;
using storage::StorageRequest;
using storage::StorageResult;

constexpr absl::Duration kPatienceWithPlace = absl::Hours(1);
constexpr uint64_t kLargestObjectList = uint64_t{1} << 30;

fs::path ListOfStored(const std::string& directory, const std::string& output) {
  return NodeFolders(directory).stored() / absl::StrCat(output, ".jsonl");
}

timespec TimeOf(double modified) {
  const double seconds = std::floor(modified);
  return {.tv_sec = static_cast<time_t>(seconds),
          .tv_nsec = static_cast<long>((modified - seconds) * 1e9)};
}

bool HasTime(const struct stat& file, double modified) {
  const timespec time = TimeOf(modified);
  return modified > 0 && file.st_mtim.tv_sec == time.tv_sec && file.st_mtim.tv_nsec == time.tv_nsec;
}

// Programs look for the newest of several checkpoints. One that the store gives no time stays as it
// is.
void SetTime(const fs::path& file, double modified) {
  if (modified <= 0) return;
  const timespec times[] = {TimeOf(modified), TimeOf(modified)};
  if (::utimensat(AT_FDCWD, file.c_str(), times, 0) != 0) {
    spdlog::warn("the time of {} cannot be set", file.native());
  }
}

// One output.
class Earlier {
 public:
  Earlier(const spec::LaunchPlan& plan, const std::string& name, const EarlierParts& parts,
          const std::atomic<bool>& cancelled)
      : plan_(plan),
        name_(name),
        output_(plan.outputs.at(name)),
        parts_(parts),
        cancelled_(cancelled),
        folder_(NodeFolders(plan.directory).outputs() / name) {}

  absl::StatusOr<std::string> Fetch() {
    TUTTI_ASSIGN_OR_RETURN(const StorageRequest request, Browse());
    TUTTI_ASSIGN_OR_RETURN(const auto listed, Ask(request));
    if (!note_.empty()) return note_;
    TUTTI_ASSIGN_OR_RETURN(former_, Former());
    if (!listed || listed->objects.empty()) {
      TUTTI_RETURN_IF_ERROR(LeaveOutRemoved({}));
      return "";
    }
    if (listed->objects.size() > kMostStoredFiles) {
      return absl::InvalidArgumentError(
          absl::StrCat("its place has more than ", kMostStoredFiles, " files"));
    }
    const auto fetched = FetchRequested(absl::StrCat("output \"", name_, "\""), request,
                                        parts_.cache, cancelled_, parts_.run);
    if (absl::IsAborted(fetched.status())) {  // others write there without a pause
      return absl::StrCat("output \"", name_, "\" begins empty: ", fetched.status().message());
    }
    TUTTI_RETURN_IF_ERROR(fetched.status());
    TUTTI_RETURN_IF_ERROR(TakeIn(*fetched, *listed));
    return "";
  }

 private:
  bool IsFile() const { return output_.type == "uri_file"; }

  absl::StatusOr<StorageRequest> Browse() const {
    TUTTI_ASSIGN_OR_RETURN(
        StorageRequest request,
        storage::RequestFor(Operation::kBrowse, output_, plan_.job_id, parts_.secrets));
    request.place = spec::PlaceOfJob(*output_.place, plan_.job_id);
    if (IsFile()) request.type = storage::PlaceType::kFile;
    return request;
  }

  absl::StatusOr<StorageResult> Run(const StorageRequest& request) const {
    return parts_.run(
        request, base::Deadline::After(kPatienceWithPlace), cancelled_,
        [](const storage::StorageProgress&) {}, -1);
  }

  // Returns what the place has; nothing if that is nothing, or cannot be known by these
  // credentials.
  absl::StatusOr<std::optional<StorageResult>> Ask(const StorageRequest& request) {
    auto listed = Run(request);
    if (listed.ok()) return *std::move(listed);
    if (absl::IsNotFound(listed.status())) {
      TUTTI_RETURN_IF_ERROR(CheckContainer());
      return std::nullopt;
    }
    const bool may_only_write = absl::IsPermissionDenied(listed.status()) &&
                                storage::SourceOf(listed.status()) == FaultSource::kStore;
    if (!may_only_write) return listed.status();
    note_ = absl::StrCat(
        "output \"", name_,
        "\" begins empty, since it is not known what is there: ", listed.status().message());
    return std::nullopt;
  }

  // Nothing is at the path: it is the first job to write there, or the container, or what is
  // mounted, is away.
  absl::Status CheckContainer() const {
    TUTTI_ASSIGN_OR_RETURN(
        const StorageRequest probe,
        storage::RequestFor(Operation::kProbe, output_, plan_.job_id, parts_.secrets));
    const absl::Status there = Run(probe).status();
    const bool counts =
        absl::IsNotFound(there) || absl::IsCancelled(there) || absl::IsUnavailable(there);
    return counts ? there : absl::OkStatus();  // what else it is, the put will tell
  }

  absl::Status TakeIn(const FetchedInput& fetched, const StorageResult& listed) {
    const auto home = cache::FetchedHome::In(fetched.path.parent_path().parent_path());
    if (!home) return absl::InternalError(absl::StrCat("no data in ", fetched.path.native()));
    TUTTI_ASSIGN_OR_RETURN(const std::string text,
                           base::ReadFile(home->objects(), kLargestObjectList));
    TUTTI_ASSIGN_OR_RETURN(StoredFiles stored,
                           StoredFiles::Open(ListOfStored(plan_.directory, name_)));
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(folder_));
    MakeRoom(listed);
    std::set<std::string> listed_here;
    std::map<std::string, double> times;
    for (const storage::StoredObject& object : listed.objects) {
      times[object.path] = object.modified;
    }
    for (const auto& [path, entry] : storage::ManifestEntriesIn(text)) {
      if (cancelled_) return absl::CancelledError("stopped while what is there was copied");
      const std::string own =
          IsFile() ? spec::WithOwnName(output_.file, plan_.job_id) : std::string(path);
      listed_here.insert(own);
      const auto time = times.find(path);
      const double modified = time == times.end() ? entry.modified : time->second;
      TUTTI_ASSIGN_OR_RETURN(const bool is_newer_here, IsNewerHere(own, modified));
      if (is_newer_here) continue;
      const fs::path from = IsFile() ? home->data() : home->files() / path;
      TUTTI_RETURN_IF_ERROR(TakeFile(from, own, entry, modified, stored));
    }
    return LeaveOutRemoved(listed_here);
  }

  // Files of the attempt before that the store had and has no longer stay in the folder, and are
  // not put back.
  absl::Status LeaveOutRemoved(const std::set<std::string>& listed) const {
    if (former_.empty()) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(StoredFiles stored,
                           StoredFiles::Open(ListOfStored(plan_.directory, name_)));
    for (const auto& [path, before] : former_) {
      const fs::path file = folder_ / path;
      std::error_code error;
      if (listed.contains(path) || !fs::is_regular_file(file, error)) continue;
      TUTTI_ASSIGN_OR_RETURN(const bool is_own, IsNewerHere(path, /*modified=*/0));
      if (is_own) continue;
      TUTTI_RETURN_IF_ERROR(stored.AddEarlier(path, before));
      TUTTI_ASSIGN_OR_RETURN(const FileState state, StateOf(file));
      TUTTI_RETURN_IF_ERROR(stored.Renew(path, state, absl::ToUnixNanos(absl::Now())));
    }
    return absl::OkStatus();
  }

  // Returns what the attempt before had put, or had of the store.
  absl::StatusOr<std::map<std::string, StoredFile>> Former() const {
    if (plan_.former_directory.empty()) return std::map<std::string, StoredFile>();
    return StoredFiles::Read(ListOfStored(plan_.former_directory, name_));
  }

  // Returns whether the folder has a file of the attempt before that the store did not get: what it
  // did get may be overwritten there since, by another node. A file with the store's time was not
  // written to since it came, whatever a loss of power has left of it.
  absl::StatusOr<bool> IsNewerHere(const std::string& path, double modified) const {
    const fs::path file = folder_ / path;
    struct stat info = {};
    if (::lstat(file.c_str(), &info) != 0) return false;
    const auto before = former_.find(path);
    const bool is_noted = before != former_.end();
    const bool is_untouched =
        HasTime(info, modified) || (is_noted && HasTime(info, before->second.stored));
    if (is_untouched || !is_noted) return !is_untouched;
    const auto hash = base::Sha256OfFile(file);
    if (absl::IsNotFound(hash.status())) return false;  // a link to nothing
    TUTTI_RETURN_IF_ERROR(hash.status());
    return base::Hex(*hash) != before->second.sha256;
  }

  // Noted before it lies there: a launcher that is killed in between leaves nothing that the next
  // one takes for the job's own.
  absl::Status TakeFile(const fs::path& from, const std::string& path, const ManifestEntry& entry,
                        double modified, StoredFiles& stored) const {
    const fs::path to = folder_ / path;
    TUTTI_RETURN_IF_ERROR(stored.AddEarlier(path, {.state = {.bytes = entry.bytes},
                                                   .sha256 = entry.sha256,
                                                   .etag = entry.etag,
                                                   .stored = modified}));
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(to.parent_path()));
    std::error_code error;
    fs::remove(to, error);  // a link would be written through
    TUTTI_RETURN_IF_ERROR(Copy(from, to, cancelled_));
    SetTime(to, modified);
    TUTTI_ASSIGN_OR_RETURN(const FileState state, StateOf(to));
    return stored.Renew(path, state, absl::ToUnixNanos(absl::Now()));
  }

  // The cache gives way to the copies, as far as no job reads what it has. What is still lacking,
  // the copy says.
  void MakeRoom(const StorageResult& listed) const {
    uint64_t needed = 0;
    for (const storage::StoredObject& object : listed.objects) {
      needed += static_cast<uint64_t>(object.bytes);
    }
    struct stat own {
    }, of_cache{};
    const bool is_one_disk = ::stat(folder_.c_str(), &own) == 0 &&
                             ::stat(parts_.cache.folder.c_str(), &of_cache) == 0 &&
                             own.st_dev == of_cache.st_dev;
    const auto free = base::FreeBytes(folder_);
    if (!is_one_disk || !free.ok() || *free >= needed) return;
    const auto gone =
        cache::NodeCache(parts_.cache.folder).MakeRoom({.freed_bytes = needed - *free}, cancelled_);
    if (!gone.ok()) spdlog::warn("room for output \"{}\": {}", name_, gone.status().ToString());
  }

  const spec::LaunchPlan& plan_;
  const std::string& name_;
  const spec::Output& output_;
  const EarlierParts& parts_;
  const std::atomic<bool>& cancelled_;
  const fs::path folder_;
  std::map<std::string, StoredFile> former_;
  std::string note_;
};

}  // namespace

bool BeginsWithItsStore(const spec::Output& output) {
  return output.place && (output.mode == "rw_mount" || output.mode == "mount");
}

absl::StatusOr<std::string> FetchEarlierFiles(const spec::LaunchPlan& plan, const std::string& name,
                                              const EarlierParts& parts,
                                              const std::atomic<bool>& cancelled) {
  auto note = Earlier(plan, name, parts, cancelled).Fetch();
  if (note.ok() || absl::IsCancelled(note.status())) return note;
  return absl::Status(note.status().code(),
                      absl::StrCat("output \"", name, "\": ",
                                   storage::EarlierFault(plan.outputs.at(name), note.status())));
}

void LeaveOutEarlierFiles(const spec::LaunchPlan& plan, Results& results) {
  for (const auto& [name, output] : plan.outputs) {
    if (!BeginsWithItsStore(output)) continue;
    const auto stored = StoredFiles::Read(ListOfStored(plan.directory, name));
    if (!stored.ok()) continue;
    const std::string prefix = absl::StrCat("outputs/", name, "/");
    std::erase_if(results.files, [&](const Result& result) {
      if (!absl::StartsWith(result.path, prefix)) return false;
      const auto found = stored->find(result.path.substr(prefix.size()));
      if (found == stored->end() || found->second.times > 0) return false;
      const auto state = StateOf(result.file);
      return state.ok() && *state == found->second.state;
    });
  }
}

}  // namespace tutti::launch
