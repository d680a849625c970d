#include "platform/stream/streamed_objects.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/machine/folder.h"
#include "base/machine/machine.h"
#include "base/status.h"
#include "base/threads/at_once.h"
#include "base/threads/start_thread.h"
#include "platform/storage/objects/object_version.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/fetch_objects.h"

namespace tutti::stream {
namespace {

namespace fs = std::filesystem;

constexpr char kBootName[] = ".tutti-boot";
constexpr size_t kIdDigits = 24;
constexpr uint64_t kMostManifest = 1 << 20;
constexpr absl::Duration kBetweenLooks = absl::Milliseconds(200);

std::string IdOf(const std::string& path) {
  return base::Hex(base::Sha256Of(path)).substr(0, kIdDigits);
}

}  // namespace

StreamedObjects::StreamedObjects(storage::ObjectStore& store, storage::Survey survey,
                                 StreamOptions options)
    : store_(store), survey_(std::move(survey)), options_(std::move(options)) {
  options_.attempts.cancelled = &ending_;
  {
    absl::MutexLock lock(&mutex_);
    objects_.resize(survey_.objects.size());
  }
  TakeUp();
  {
    absl::MutexLock lock(&mutex_);
    NoteFetches(0);
  }
  for (int i = 0; i < options_.fetches; ++i) {
    threads_.push_back(base::StartThread([this] { Work(); }));
  }
}

StreamedObjects::~StreamedObjects() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

size_t StreamedObjects::Find(const std::string& path) const {
  const auto found = std::lower_bound(
      survey_.objects.begin(), survey_.objects.end(), path,
      [](const storage::StoredObject& object, const std::string& at) { return object.path < at; });
  if (found == survey_.objects.end() || found->path != path) return kNone;
  return static_cast<size_t>(found - survey_.objects.begin());
}

fs::path StreamedObjects::FolderOf(size_t index) const {
  return options_.folder / IdOf(survey_.objects[index].path);
}

fs::path StreamedObjects::FileOf(size_t index) const {
  return FolderOf(index) / survey_.objects[index].path;
}

// Counts what an earlier process has left, and removes what no object has any more.
void StreamedObjects::TakeUp() {
  const std::vector<size_t> left = KeepWhatIsLeft();
  AskForVersions(left);
  const storage::Activity::OnDisk on_disk(options_.attempts.activity);
  absl::MutexLock lock(&mutex_);
  for (const size_t index : left) {
    std::error_code error;
    if (IsThere(index)) {
      objects_[index].state = IsChecked(index) ? State::kThere : State::kUnchecked;
      bytes_ += static_cast<uint64_t>(survey_.objects[index].bytes);
    } else if (fs::exists(FileOf(index), error)) {  // another version; parts of a file go on
      base::RemoveTree(FolderOf(index)).IgnoreError();
    }
  }
}

std::vector<size_t> StreamedObjects::KeepWhatIsLeft() {
  const storage::Activity::OnDisk on_disk(options_.attempts.activity);
  std::map<std::string, size_t> ids;
  for (size_t i = 0; i < survey_.objects.size(); ++i) ids[IdOf(survey_.objects[i].path)] = i;
  std::vector<size_t> left;
  for (const std::string& name : base::NamesIn(options_.folder)) {
    const auto found = ids.find(name);
    if (found != ids.end()) {
      left.push_back(found->second);
    } else {
      base::RemoveTree(options_.folder / name).IgnoreError();
    }
  }
  return left;
}

// A list has no ETags. What cannot be asked for is fetched again when it is read, if at all.
void StreamedObjects::AskForVersions(const std::vector<size_t>& indices) {
  base::ForEachAtOnce(indices.size(), options_.connections, [&](size_t i) {
    storage::StoredObject& object = survey_.objects[indices[i]];
    if (!object.etag.empty() || storage::IsSettled(object, options_.settled_before)) return;
    const auto reader = store_.Open(survey_.PathInContainer(object));
    if (options_.attempts.activity != nullptr) options_.attempts.activity->Note();
    if (reader.ok()) storage::TakeAnswer((*reader)->object(), object);
  });
}

uint64_t StreamedObjects::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

std::optional<storage::ManifestEntry> StreamedObjects::EntryOf(size_t index) const {
  const auto text = base::ReadFile(FolderOf(index) / storage::kManifestName, kMostManifest);
  if (!text.ok()) return std::nullopt;
  const auto entries = storage::ManifestEntriesIn(*text);
  const auto entry = entries.find(survey_.objects[index].path);
  if (entry == entries.end()) return std::nullopt;
  return entry->second;
}

// Decides by what is noted, without a request to the store: an object that is young is fetched
// again.
bool StreamedObjects::IsThere(size_t index) const {
  const storage::StoredObject& object = survey_.objects[index];
  const std::optional<storage::ManifestEntry> entry = EntryOf(index);
  struct stat info = {};
  if (!entry || ::stat(FileOf(index).c_str(), &info) != 0) return false;
  return info.st_size == object.bytes && entry->bytes == object.bytes &&
         storage::IsOf(*entry, object, storage::IsSettled(object, options_.settled_before));
}

bool StreamedObjects::IsChecked(size_t index) const {
  return base::ReadFile(FolderOf(index) / kBootName, 256).value_or("") == base::BootId();
}

// The bytes are checked once after each start of the machine, which may follow a power failure.
absl::Status StreamedObjects::CheckBytes(size_t index) const {
  const storage::Activity::OnDisk on_disk(options_.attempts.activity);
  const std::optional<storage::ManifestEntry> entry = EntryOf(index);
  TUTTI_ASSIGN_OR_RETURN(const base::Sha256Digest digest, base::Sha256OfFile(FileOf(index)));
  if (!entry || base::Hex(digest) != entry->sha256) {
    return absl::DataLossError("it is not what was fetched");
  }
  return base::ReplaceFile(FolderOf(index) / kBootName, base::BootId());
}

absl::StatusOr<fs::path> StreamedObjects::Get(Reader reader, const std::string& path,
                                              const std::function<bool()>& gone) {
  const size_t index = Find(path);
  if (index == kNone) {
    return storage::AboutObject(absl::NotFoundError("the place has no such object"), path);
  }
  absl::MutexLock lock(&mutex_);
  Object& object = objects_[index];
  if (const auto own = ahead_.find(reader); own != ahead_.end()) {
    const auto at = std::find(own->second.begin(), own->second.end(), index);
    if (at != own->second.end()) own->second.erase(at);
  }
  const int64_t failures = object.failures;
  ++object.waiting;
  if (object.state == State::kAbsent || object.state == State::kUnchecked) {
    asked_for_.push_back(index);
  }
  changed_.SignalAll();
  while (object.state != State::kThere && object.failures == failures && !ending_ && !gone()) {
    changed_.WaitWithTimeout(&mutex_, kBetweenLooks);
  }
  --object.waiting;
  if (ending_) return absl::CancelledError("tutti-storage ends");
  if (object.state != State::kThere && object.failures == failures) {
    return absl::CancelledError("the reader has gone");
  }
  if (object.state != State::kThere) return object.failure;
  ++object.holders[reader];
  object.last_use = ++uses_;
  return FileOf(index);
}

void StreamedObjects::Drop(Reader reader, const std::string& path) {
  const size_t index = Find(path);
  if (index == kNone) return;
  absl::MutexLock lock(&mutex_);
  objects_[index].holders.erase(reader);
  changed_.SignalAll();
}

void StreamedObjects::SetAhead(Reader reader, const std::vector<std::string>& paths) {
  std::deque<size_t> order;
  for (const std::string& path : paths) {
    if (const size_t index = Find(path); index != kNone) order.push_back(index);
  }
  absl::MutexLock lock(&mutex_);
  ahead_[reader] = std::move(order);
  changed_.SignalAll();
}

void StreamedObjects::Leave(Reader reader) {
  absl::MutexLock lock(&mutex_);
  ahead_.erase(reader);
  for (Object& object : objects_) object.holders.erase(reader);
  changed_.SignalAll();
}

// Returns the object that is missed least: of those that nobody is going to ask for the one that
// was not used for longest; else, with `also_ahead`, the one that is asked for last.
size_t StreamedObjects::Expendable(bool also_ahead) const {
  size_t unused = kNone, last = kNone, last_place = 0;
  std::map<size_t, size_t> places;
  for (const auto& [reader, order] : ahead_) {
    for (size_t place = 0; place < order.size(); ++place) {
      const auto [at, is_new] = places.emplace(order[place], place);
      if (!is_new) at->second = std::min(at->second, place);
    }
  }
  for (size_t i = 0; i < objects_.size(); ++i) {
    const Object& object = objects_[i];
    if (object.state == State::kAbsent || object.state == State::kComing) continue;
    if (!object.holders.empty() || object.waiting > 0) continue;
    const auto place = places.find(i);
    if (place == places.end()) {
      if (unused == kNone || object.last_use < objects_[unused].last_use) unused = i;
    } else if (last == kNone || place->second > last_place) {
      last = i;
      last_place = place->second;
    }
  }
  return unused != kNone || !also_ahead ? unused : last;
}

void StreamedObjects::Remove(size_t index) {
  objects_[index].state = State::kAbsent;
  bytes_ -= static_cast<uint64_t>(survey_.objects[index].bytes);
  base::RemoveTree(FolderOf(index)).IgnoreError();
}

bool StreamedObjects::RemoveOne() {
  absl::MutexLock lock(&mutex_);
  const size_t least = Expendable(/*also_ahead=*/true);
  if (least == kNone) return false;
  Remove(least);
  return true;
}

// Makes room for it as far as that may be. What is asked for comes in any case: who asks may hold
// all that is there.
bool StreamedObjects::MayCome(size_t index, bool is_asked_for) {
  const auto needed = static_cast<uint64_t>(survey_.objects[index].bytes);
  while (bytes_ + needed > options_.most_bytes) {
    const size_t least = Expendable(is_asked_for);
    if (least == kNone) return is_asked_for;
    Remove(least);
  }
  return true;
}

size_t StreamedObjects::Next() {
  while (!asked_for_.empty()) {
    const size_t index = asked_for_.front();
    asked_for_.pop_front();
    const Object& object = objects_[index];
    if (object.waiting == 0) continue;
    if (object.state == State::kUnchecked) return index;
    if (object.state == State::kAbsent && MayCome(index, true)) return index;
  }
  size_t longest = 0;
  for (const auto& [reader, order] : ahead_) longest = std::max(longest, order.size());
  for (size_t place = 0; place < longest; ++place) {
    for (const auto& [reader, order] : ahead_) {
      if (place >= order.size()) continue;
      const Object& object = objects_[order[place]];
      // One that has failed waits until it is asked for, so that its error is told.
      if (object.state == State::kUnchecked) return order[place];
      if (object.state != State::kAbsent || object.failures > 0) continue;
      return MayCome(order[place], false) ? order[place] : kNone;
    }
  }
  return kNone;
}

// The watch for a silent store must not mistake a time without readers for one.
void StreamedObjects::NoteFetches(int more) {
  fetching_ += more;
  if (fetching_ > 0) {
    idle_.reset();
  } else if (!idle_) {
    idle_.emplace(options_.attempts.activity);
  }
}

void StreamedObjects::Work() {
  mutex_.Lock();
  while (!ending_) {
    const size_t index = Next();
    if (index == kNone) {
      changed_.Wait(&mutex_);
      continue;
    }
    Object& object = objects_[index];
    const bool is_unchecked = object.state == State::kUnchecked;
    object.state = State::kComing;
    if (!is_unchecked) bytes_ += static_cast<uint64_t>(survey_.objects[index].bytes);
    NoteFetches(1);
    mutex_.Unlock();
    const absl::Status fetched = is_unchecked ? CheckOrFetch(index) : Fetch(index);
    mutex_.Lock();
    NoteFetches(-1);
    object.state = fetched.ok() ? State::kThere : State::kAbsent;
    object.last_use = ++uses_;
    if (fetched.ok()) {
      object.failures = 0;
    } else {
      bytes_ -= static_cast<uint64_t>(survey_.objects[index].bytes);
      ++object.failures;
      object.failure = storage::AboutObject(fetched, survey_.objects[index].path);
    }
    changed_.SignalAll();
  }
  mutex_.Unlock();
}

absl::Status StreamedObjects::CheckOrFetch(size_t index) {
  if (CheckBytes(index).ok()) return absl::OkStatus();
  base::RemoveTree(FolderOf(index)).IgnoreError();
  return Fetch(index);
}

// On a full disk what nobody holds goes first, then what others have in the node's cache.
absl::Status StreamedObjects::Fetch(size_t index) {
  while (true) {
    const absl::Status fetched = FetchOnce(index);
    if (!absl::IsResourceExhausted(fetched) || ending_) return fetched;
    if (RemoveOne()) continue;
    if (!options_.make_room || !options_.make_room(ending_)) return fetched;
  }
}

absl::Status StreamedObjects::FetchOnce(size_t index) const {
  storage::FetchOptions options{.folder = FolderOf(index), .connections = options_.connections};
  options.range_bytes = options_.range_bytes;
  options.settled_before = options_.settled_before;
  options.formers = options_.formers;
  options.attempts = options_.attempts;
  const storage::Survey one{survey_.base, false, {survey_.objects[index]}};
  TUTTI_RETURN_IF_ERROR(storage::FetchObjects(store_, one, options).status());
  struct stat info = {};
  if (::stat(FileOf(index).c_str(), &info) == 0 && (info.st_mode & 07777) != 0444) {
    ::chmod(FileOf(index).c_str(), 0444);
  }
  return base::ReplaceFile(FolderOf(index) / kBootName, base::BootId());
}

}  // namespace tutti::stream
