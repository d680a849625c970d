#include "platform/launch/data/fetch_place.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "base/text/path_pattern.h"
#include "platform/cache/fetched_home.h"
#include "platform/cache/node_cache.h"
#include "platform/storage/input_request.h"
#include "platform/storage/storage_fault.h"
#include "spec/types/enum_names.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using cache::FetchedHome;
using cache::kKeyDigits;
using storage::Operation;
using storage::StorageResult;

constexpr absl::Duration kPatienceWithList = absl::Hours(1);
constexpr absl::Duration kPatienceWithFetch = absl::Hours(24 * 7);
constexpr absl::Duration kBetweenLines = absl::Seconds(10);  // of the log
constexpr int kMostAttempts = 3;                             // if the data change meanwhile
constexpr absl::Duration kClocksDiffer = absl::Minutes(15);  // a store's and this one, at most
constexpr size_t kLongestPlaceName = 128;
constexpr size_t kMostFormers = 8;

// The name that the file or folder has on the node, as programs expect it that look at its ending:
// the last part of the path without a wildcard, else the container's.
std::string NameOf(const spec::DataPlace& place) {
  std::string name = "data";
  const auto take = [&name](absl::string_view part) {
    const bool safe = !part.empty() && part.size() <= kLongestPlaceName && part != "." &&
                      part != ".." && part.find_first_of("*?\\:") == absl::string_view::npos &&
                      !absl::StartsWith(part, ".tutti");
    if (safe) name = std::string(part);
    return safe || part.empty();
  };
  take(place.container);
  const std::string path =
      place.is_pattern ? base::FolderOfPattern(place.path, spec::WildcardsOf(place)) : place.path;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (!take(part) && place.is_pattern) break;
  }
  return name;
}

// The folder of the container that the objects' paths are relative to, as the program has them.
std::string BaseOf(const spec::DataPlace& place, bool is_file) {
  if (place.is_pattern) return base::FolderOfPattern(place.path, spec::WildcardsOf(place));
  return is_file ? storage::FolderOf(place.path) : place.path;
}

const char* KindOfPath(const spec::DataPlace& place) {
  if (!place.is_pattern) return "";
  return place.has_classes ? "pattern with classes\n" : "pattern\n";
}

// Two datastores of one container share what is fetched; another type, as of a file that is taken
// for a folder, does not. `damaged`: how many with that digest somebody has written to.
std::string KeyOf(const spec::DataPlace& place, storage::PlaceType type, const std::string& digest,
                  int damaged) {
  std::string text = absl::StrCat(spec::StoreName(place.kind), "\n", place.account, "\n",
                                  place.container, "\n", place.endpoint, "\n", place.path, "\n",
                                  KindOfPath(place), storage::Name(type), "\n", digest);
  if (damaged > 0) absl::StrAppend(&text, "\n", damaged);
  return base::Hex(base::Sha256Of(text)).substr(0, kKeyDigits);
}

// Full hours, so that nodes and jobs agree: StorageRequest::settled_before.
int64_t SettledBefore(absl::Time now) {
  return absl::ToInt64Seconds(absl::Floor(now - kClocksDiffer - absl::UnixEpoch(), absl::Hours(1)));
}

// The lines of the launcher's log, seldom.
class ProgressLog {
 public:
  explicit ProgressLog(const std::string& what) : what_(what) {}
  void operator()(const storage::StorageProgress& progress) {
    if (base::SteadyNow() < next_) return;
    next_ = base::SteadyNow() + kBetweenLines;
    spdlog::info("{}: {} of {} objects, {} of {}", what_, progress.objects, progress.of_objects,
                 base::BinarySize(static_cast<uint64_t>(progress.bytes)),
                 base::BinarySize(static_cast<uint64_t>(progress.of_bytes)));
  }

 private:
  const std::string what_;
  absl::Duration next_ = base::SteadyNow() + kBetweenLines;
};

// One input on its way.
class Fetch {
 public:
  Fetch(const std::string& what, storage::StorageRequest request, const DataCache& cache,
        const std::atomic<bool>& cancelled, const StorageFunction& run)
      : what_(what),
        request_(std::move(request)),
        options_(cache),
        cache_(cache.folder),
        cancelled_(cancelled),
        run_(run) {
    request_.settled_before = SettledBefore(absl::Now());
    request_.tells_lacking = true;
    request_.peers = cache.peers;
  }

  absl::StatusOr<FetchedInput> Run() {
    TUTTI_RETURN_IF_ERROR(FindType());
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      TUTTI_ASSIGN_OR_RETURN(const StorageResult now, Ask(Operation::kDigest, kPatienceWithList));
      auto there = Take(now);
      if (!absl::IsAborted(there.status())) return there;
      spdlog::info("{}: {}; it is fetched again", what_, std::string(there.status().message()));
    }
    return absl::AbortedError(
        absl::StrCat(storage::Described(request_.place), " changes as fast as it is fetched"));
  }

 private:
  absl::StatusOr<StorageResult> Ask(Operation operation, absl::Duration patience, int lock = -1) {
    request_.operation = operation;
    return run_(request_, base::Deadline::After(patience), cancelled_, ProgressLog(what_), lock);
  }

  // Finds out whether a model is a file or a folder.
  absl::Status FindType() {
    if (request_.type != storage::PlaceType::kAny) return absl::OkStatus();
    request_.type = storage::PlaceType::kFolder;
    if (request_.place.is_pattern || request_.place.path.empty()) return absl::OkStatus();
    request_.type = storage::PlaceType::kFile;
    const absl::Status status = Ask(Operation::kStat, kPatienceWithList).status();
    if (absl::IsNotFound(status) || absl::IsInvalidArgument(status)) {
      request_.type = storage::PlaceType::kFolder;
      return absl::OkStatus();
    }
    return status;
  }

  // Returns where the objects of that list lie, fetched if need be; Aborted if others came.
  absl::StatusOr<FetchedInput> Take(const StorageResult& listed) {
    for (int damaged = 0;; ++damaged) {
      const std::string key = KeyOf(request_.place, request_.type, listed.digest, damaged);
      const FetchedHome home(cache_.PathOf(key), NameOf(request_.place), IsFile());
      TUTTI_ASSIGN_OR_RETURN(cache::HeldData held, cache_.Take(key, cancelled_));
      const cache::DataOrigin origin = {storage::Described(request_.place),
                                        spec::StoreOf(request_.place),
                                        BaseOf(request_.place, IsFile())};
      cache_.NoteOrigin(key, origin);
      TUTTI_ASSIGN_OR_RETURN(const bool is_there, home.IsThere());
      if (!is_there) {
        TUTTI_RETURN_IF_ERROR(FillWithRoom(home, listed, held.lock.get()));
        cache_.NoteOrigin(key, origin);  // there may have been no room for it
        NoteLatest(key);
        return FetchedInput{home.data(), std::move(held.pin)};
      }
      TUTTI_ASSIGN_OR_RETURN(const bool is_damaged, home.IsDamaged(options_.reread, cancelled_));
      if (!is_damaged) return FetchedInput{home.data(), std::move(held.pin)};
      spdlog::warn("{}: {} is not what was fetched; it is fetched again", what_,
                   home.folder().native());
    }
  }

  // Keeps to what the cache may have. On a full disk what no job reads goes, as much as the program
  // says is lacking. Formers stay as long as that is enough: what they have need not be fetched.
  absl::Status FillWithRoom(const FetchedHome& home, const StorageResult& listed, int lock) {
    const uint64_t needed = static_cast<uint64_t>(listed.bytes);
    // If an earlier version is there, little may have changed since.
    if (options_.most_bytes > 0 && Latest().empty()) {
      const uint64_t others = options_.most_bytes - std::min(options_.most_bytes, needed);
      TUTTI_RETURN_IF_ERROR(MakeRoom({.most_bytes = others}).status());
    }
    std::vector<base::UniqueFd> formers;  // pins
    TUTTI_ASSIGN_OR_RETURN(formers, PinFormers(home));
    absl::Status filled = Fill(home, listed.digest, lock);
    while (absl::IsResourceExhausted(filled)) {
      const auto lacking = static_cast<uint64_t>(storage::LackingOf(filled));
      TUTTI_ASSIGN_OR_RETURN(
          const bool has_room,
          MakeRoom({.freed_bytes = lacking > 0 ? lacking : cache::kRoomForNotes}));
      if (!has_room && formers.empty()) {  // what has come would hold the disk full for all others
        base::RemoveTree(home.folder() / "part").IgnoreError();
        return filled;
      }
      formers.clear();
      request_.formers.clear();  // without them the program says how much the whole lacks
      if (has_room) {
        TUTTI_ASSIGN_OR_RETURN(formers, PinFormers(home));
      }
      filled = Fill(home, listed.digest, lock);
    }
    TUTTI_RETURN_IF_ERROR(filled);
    formers.clear();
    if (options_.most_bytes == 0) return absl::OkStatus();
    return MakeRoom({.most_bytes = options_.most_bytes}).status();
  }

  // Returns whether something went.
  absl::StatusOr<bool> MakeRoom(const cache::RoomGoal& room) const {
    TUTTI_ASSIGN_OR_RETURN(const auto gone, cache_.MakeRoom(room, cancelled_));
    for (const cache::CachedData& data : gone) {
      spdlog::info("{}: {} of {} removed to make room, last used {}", what_,
                   base::BinarySize(data.own_bytes), data.place.empty() ? data.key : data.place,
                   absl::FormatTime(data.last_use));
    }
    return !gone.empty();
  }

  absl::Status Fill(const FetchedHome& home, const std::string& digest, int lock) {
    // One that found no room for the last steps has all the same brought it.
    TUTTI_ASSIGN_OR_RETURN(const bool is_there, home.IsThere());
    if (is_there) return absl::OkStatus();
    TakeLeftover(home);
    std::error_code error;
    // What an earlier fetch has left is known by its size, and the machine may have lost its power.
    const bool is_new = !fs::exists(home.folder() / "part", error) && !error;
    request_.folder = home.part();
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(request_.folder));
    const auto fetched = Ask(Operation::kFetch, kPatienceWithFetch, lock);
    request_.folder.clear();
    leftover_ = home.folder();
    TUTTI_RETURN_IF_ERROR(fetched.status());
    if (fetched->digest != digest) {
      return absl::AbortedError("the objects have changed since they were listed");
    }
    TUTTI_RETURN_IF_ERROR(NameFile(home));
    return home.Keep(/*is_verified=*/is_new);
  }

  // Goes on with what had come for this input when the objects changed: most of it is of the new
  // version, too. Not if another launcher fetches there.
  void TakeLeftover(const FetchedHome& home) const {
    if (leftover_.empty() || leftover_ == home.folder()) return;
    const auto lock = base::Open(leftover_.native() + ".lock", O_RDWR | O_CREAT);
    if (!lock.ok() || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) return;
    std::error_code ignored;  // as if there is a part
    fs::rename(leftover_ / "part", home.folder() / "part", ignored);
  }

  // The file that has the key of what was fetched last of the place.
  fs::path LatestFile() const {
    return cache_.folder() / "places" / KeyOf(request_.place, request_.type, "", 0);
  }
  // Returns the key in it; "" if there is none.
  std::string Latest() const {
    const auto key = base::ReadFile(LatestFile(), kKeyDigits);
    return key.ok() && cache::IsKey(*key) ? *key : "";
  }
  // Without it the next version is looked for among all of its container.
  void NoteLatest(const std::string& key) const {
    absl::Status noted = base::MakeDirectories(LatestFile().parent_path());
    if (noted.ok()) noted = base::ReplaceFile(LatestFile(), key);
    if (!noted.ok()) spdlog::warn("{}: {}", what_, noted.ToString());
  }
  // Names what the program is to take from, if it has not changed: the former version of the place,
  // then others of its container, those that were used last. What was not read since this machine
  // was started is compared with its hash. Returns what keeps them there.
  absl::StatusOr<std::vector<base::UniqueFd>> PinFormers(const FetchedHome& home) {
    const std::string base = BaseOf(request_.place, IsFile());
    const std::string latest = Latest();
    std::vector<std::pair<std::string, std::string>> formers = {{latest, base}};
    for (auto& former : cache_.KeysOf(spec::StoreOf(request_.place), base)) {
      if (former.first != latest) formers.push_back(std::move(former));
    }
    request_.formers.clear();
    std::vector<base::UniqueFd> pins;
    for (const auto& [key, of] : formers) {
      const bool is_own = key.empty() || cache_.PathOf(key) == home.folder();
      if (is_own || request_.formers.size() == kMostFormers) continue;
      TUTTI_ASSIGN_OR_RETURN(base::UniqueFd pin, PinFormer(key, of));
      if (pin.valid()) pins.push_back(std::move(pin));
    }
    return pins;
  }
  // Nothing if it is not whole, or somebody fetches or removes it just now.
  absl::StatusOr<base::UniqueFd> PinFormer(const std::string& key, const std::string& base) {
    const auto lock = base::Open(cache_.LockOf(key), O_RDWR | O_CREAT);
    if (!lock.ok() || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) return base::UniqueFd();
    const auto former = FetchedHome::In(cache_.PathOf(key));
    if (!former) return base::UniqueFd();
    request_.formers.push_back(
        {.folder = former->files(),
         .objects = former->objects(),
         .base = base,
         .verify = options_.reread == cache::Reread::kOnceABoot && !former->IsVerified()});
    auto pin = cache_.Hold(key);
    if (absl::IsNotFound(pin.status()))
      return base::UniqueFd();  // nobody but the service removes it
    return pin;
  }

  // The object's own name may be none for a file here.
  absl::Status NameFile(const FetchedHome& home) const {
    std::error_code error;
    const fs::path named = home.part() / home.data().filename();
    if (!IsFile() || fs::exists(named, error)) return absl::OkStatus();
    const std::string& path = request_.place.path;
    fs::rename(home.part() / path.substr(path.rfind('/') + 1), named, error);
    if (!error) return absl::OkStatus();
    return base::ErrnoStatus(absl::StrCat("keep ", home.folder().native()), error.value());
  }

  bool IsFile() const { return request_.type == storage::PlaceType::kFile; }

  const std::string& what_;
  storage::StorageRequest request_;
  const DataCache& options_;
  const cache::NodeCache cache_;
  const std::atomic<bool>& cancelled_;
  const StorageFunction& run_;
  fs::path leftover_;  // where a fetch was that has not come to its end
};

}  // namespace

absl::StatusOr<FetchedInput> FetchRequested(const std::string& what,
                                            storage::StorageRequest request, const DataCache& cache,
                                            const std::atomic<bool>& cancelled,
                                            const StorageFunction& run) {
  return Fetch(what, std::move(request), cache, cancelled, run).Run();
}

absl::StatusOr<FetchedInput> FetchPlace(const std::string& name, const spec::Input& input,
                                        const std::map<std::string, std::string>& secrets,
                                        const DataCache& cache, const std::atomic<bool>& cancelled,
                                        const StorageFunction& run) {
  const std::string what = absl::StrCat("input \"", name, "\"");
  auto request = storage::RequestFor(Operation::kDigest, input, secrets);
  auto fetched = request.ok() ? FetchRequested(what, *std::move(request), cache, cancelled, run)
                              : absl::StatusOr<FetchedInput>(request.status());
  if (fetched.ok() || absl::IsCancelled(fetched.status())) return fetched;
  return absl::Status(fetched.status().code(),
                      absl::StrCat(what, ": ", storage::InputFault(input, fetched.status())));
}

}  // namespace tutti::launch
