#include "platform/stream/stream_cache.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process/waiting.h"
#include "base/status.h"
#include "platform/cache/fetched_home.h"
#include "platform/cache/node_cache.h"
#include "platform/storage/transfer/activity.h"
#include "platform/storage/transfer/kept_list.h"
#include "platform/storage/transfer/object_names.h"
#include "platform/storage/transfer/place_survey.h"

namespace tutti::stream {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kClocksDiffer = absl::Minutes(15);  // a store's and this one, at most
constexpr size_t kMostFormers = 8;
constexpr int kMostKeys = 64;  // of one place: processes that have it at other sockets

// Returns the key, which is the same for each address of a place, and differs for each node that
// shares the folder. `number` is 0, then the numbers after it.
std::string KeyOf(const spec::DataPlace& place, const std::string& node, int number) {
  std::string text = absl::StrCat("streamed\n", spec::StoreOf(place), "\n", place.path, "\n",
                                  place.is_pattern, "\n", number);
  if (!node.empty()) absl::StrAppend(&text, "\n", node);
  return base::Hex(base::Sha256Of(text)).substr(0, cache::kKeyDigits);
}

int64_t SettledBefore() {
  return absl::ToInt64Seconds(
      absl::Floor(absl::Now() - kClocksDiffer - absl::UnixEpoch(), absl::Hours(1)));
}

// Returns the key whose folder no other process has; `held` gets its pin and its lock.
absl::StatusOr<std::string> TakeKey(const cache::NodeCache& node,
                                    const storage::StorageRequest& request,
                                    const std::string& of_node, const storage::Survey& survey,
                                    std::vector<base::UniqueFd>& held) {
  static const std::atomic<bool> never = false;
  for (int number = 0; number < kMostKeys; ++number) {
    const std::string key = KeyOf(request.place, of_node, number);
    TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd lock, base::LockFile(node.LockOf(key), never));
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(node.PathOf(key) / cache::kStreamed));
    TUTTI_ASSIGN_OR_RETURN(
        base::UniqueFd own,
        base::Open(node.PathOf(key) / absl::StrCat(cache::kStreamed, ".lock"), O_RDWR | O_CREAT));
    if (::flock(own.get(), LOCK_EX | LOCK_NB) != 0) continue;
    TUTTI_ASSIGN_OR_RETURN(base::UniqueFd pin, node.Pin(key));
    node.NoteOrigin(key, {.words = storage::Described(request.place),
                          .store = spec::StoreOf(request.place),
                          .base = survey.base});
    held.push_back(std::move(pin));
    held.push_back(std::move(own));
    return key;
  }
  return absl::UnavailableError("too many processes read this place through this cache");
}

// Returns the whole versions that were used last, which stay as long as they are held.
std::vector<storage::FormerFolder> TakeFormers(const cache::NodeCache& node,
                                               const storage::StorageRequest& request,
                                               const storage::Survey& survey,
                                               std::vector<base::UniqueFd>& held) {
  std::vector<storage::FormerFolder> formers;
  for (const auto& [key, base] : node.KeysOf(spec::StoreOf(request.place), survey.base)) {
    if (formers.size() == kMostFormers) break;
    const auto lock = base::Open(node.LockOf(key), O_RDWR | O_CREAT);
    if (!lock.ok() || ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) continue;
    const auto former = cache::FetchedHome::In(node.PathOf(key));
    auto pin = node.Hold(key);
    if (!former || !pin.ok()) continue;
    formers.push_back({.folder = former->files(),
                       .objects = former->objects(),
                       .base = base,
                       .verify = !former->IsVerified()});
    held.push_back(*std::move(pin));
  }
  return formers;
}

uint64_t BytesBelow(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored)) bytes += entry->file_size(ignored);
  }
  return bytes;
}

absl::StatusOr<uint64_t> MostOf(const fs::path& folder) {
  TUTTI_ASSIGN_OR_RETURN(const uint64_t free, base::FreeBytes(folder));
  return (free + BytesBelow(folder)) / 10 * 9;
}

// Takes its place in the cache; `held` gets what keeps it. The store is asked nothing meanwhile,
// however long the disk takes.
absl::StatusOr<StreamOptions> OptionsIn(const cache::NodeCache& node,
                                        const storage::StorageRequest& request,
                                        const StreamRequest& asked, const storage::Survey& survey,
                                        const storage::Attempts& attempts,
                                        std::vector<base::UniqueFd>& held) {
  const storage::Activity::OnDisk on_disk(attempts.activity);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(asked.cache));
  TUTTI_ASSIGN_OR_RETURN(const std::string key, TakeKey(node, request, asked.node, survey, held));
  StreamOptions options{.folder = node.PathOf(key) / cache::kStreamed};
  TUTTI_ASSIGN_OR_RETURN(options.most_bytes, MostOf(options.folder));
  options.most_bytes = std::min(options.most_bytes, asked.most_bytes.value_or(options.most_bytes));
  options.most_bytes = std::max<uint64_t>(1, options.most_bytes / asked.nodes);
  options.formers = TakeFormers(node, request, survey, held);
  return options;
}

// A program that is started anew finds the list no more.
absl::StatusOr<storage::Survey> SurveyOf(storage::ObjectStore& store,
                                         const storage::StorageRequest& request,
                                         const StreamRequest& asked,
                                         const storage::Attempts& attempts) {
  if (!asked.list.empty()) {
    const storage::Activity::OnDisk on_disk(attempts.activity);
    auto kept = storage::ReadKeptList(asked.list);
    if (kept.ok()) return kept;
  }
  return storage::SurveyPlace(store, request.place, request.type, attempts);
}

}  // namespace

absl::StatusOr<OpenedStream> OpenStream(storage::ObjectStore& store,
                                        const storage::StorageRequest& request,
                                        const StreamRequest& asked,
                                        const storage::Attempts& attempts) {
  TUTTI_ASSIGN_OR_RETURN(storage::Survey survey, SurveyOf(store, request, asked, attempts));
  TUTTI_RETURN_IF_ERROR(storage::CheckNames(survey.objects));
  const cache::NodeCache node(asked.cache);
  OpenedStream opened;
  TUTTI_ASSIGN_OR_RETURN(StreamOptions options,
                         OptionsIn(node, request, asked, survey, attempts, opened.held));
  options.settled_before = SettledBefore();
  options.attempts = attempts;
  options.make_room = [node](const std::atomic<bool>& cancelled) {
    const auto gone = node.MakeRoom({.freed_bytes = 1}, cancelled);
    return gone.ok() && !gone->empty();
  };
  opened.objects = std::make_unique<StreamedObjects>(store, std::move(survey), std::move(options));
  return opened;
}

}  // namespace tutti::stream
