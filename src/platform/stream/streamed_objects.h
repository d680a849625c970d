// StreamedObjects brings the objects of one place to the node one by one, when somebody is about to
// read them, with a bound on the disk that they take (decision 072). Each object has a folder of
// its own in the node's cache:
//
//   KEY/streamed/ID/PATH            the object, read-only; ID is the hash of its path
//   KEY/streamed/ID/.tutti-objects  which version it is, with its SHA-256 (object_manifest.h)
//   KEY/streamed/ID/.tutti-boot     in which start of the machine its bytes were last hashed
//
// An object that an earlier start of the machine has left is hashed before a reader gets it, and
// fetched again if it has changed.
//
// A reader holds what it was given until it drops it; what nobody holds may go. Readers say which
// objects they are going to ask for, in that order: these are fetched ahead as far as the bound
// allows, and what is asked for comes before them, beyond the bound if all else is held, so that
// nobody waits for ever.
//
// Invariant: an object is held by a reader only while it is on the disk. One process at a time has
// the folder. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/objects/object_store.h"
#include "platform/storage/storage_request.h"
#include "platform/storage/transfer/attempts.h"
#include "platform/storage/transfer/place_survey.h"

namespace tutti::stream {

struct StreamOptions {
  std::filesystem::path folder;  // KEY/streamed
  uint64_t most_bytes = 0;       // on the disk, of objects
  int fetches = 4;               // objects that come at the same time
  int connections = 8;           // requests at the same time of each
  int64_t range_bytes = 8 << 20;
  int64_t settled_before = 0;                  // as StorageRequest has it
  std::vector<storage::FormerFolder> formers;  // from which is taken what has not changed
  // `cancelled` is the object's own. While nothing is fetched, `activity` waits for no store.
  storage::Attempts attempts = {};
  // Frees room on a full disk beyond these objects; false if nothing can go. May be empty.
  std::function<bool(const std::atomic<bool>& cancelled)> make_room = {};
};

class StreamedObjects {
 public:
  using Reader = int64_t;  // one who reads; any number that no other has

  // `store` outlives the object. `survey`: what the place has. Takes up what is in the folder.
  StreamedObjects(storage::ObjectStore& store, storage::Survey survey, StreamOptions options);
  // Ends fetches; what has come of them stays for the next process.
  ~StreamedObjects();
  StreamedObjects(const StreamedObjects&) = delete;
  StreamedObjects& operator=(const StreamedObjects&) = delete;

  const std::vector<storage::StoredObject>& list() const { return survey_.objects; }
  uint64_t most_bytes() const { return options_.most_bytes; }
  // Returns the bytes of objects on the disk, and of those that come just now.
  uint64_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for an object and returns where it lies; the reader holds it from now on, once more each
  // time. NotFound: the place has no such object; Cancelled: the object ends, or `gone`
  // returns true, which is asked every 0.2 s; others are those of storage::FetchObjects, about the
  // object.
  absl::StatusOr<std::filesystem::path> Get(Reader reader, const std::string& path,
                                            const std::function<bool()>& gone)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives back what Get has given, all times at once.
  void Drop(Reader reader, const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // Says what the reader is going to ask for, the next first, in place of what it said before.
  // Paths that the place does not have are ignored.
  void SetAhead(Reader reader, const std::vector<std::string>& paths) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets the reader and all that it holds.
  void Leave(Reader reader) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Unchecked: there since an earlier start of the machine, and not hashed in this one.
  enum class State { kAbsent, kUnchecked, kComing, kThere };
  struct Object {
    State state = State::kAbsent;
    bool is_known = false;          // whether the folder was looked at
    std::map<Reader, int> holders;  // how often
    int64_t last_use = 0;           // counts uses
    int waiting = 0;                // calls of Get
    int64_t failures = 0;
    absl::Status failure;  // the last
  };
  static constexpr size_t kNone = static_cast<size_t>(-1);

  size_t Find(const std::string& path) const;
  void NoteFetches(int more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::filesystem::path FolderOf(size_t index) const;
  std::filesystem::path FileOf(size_t index) const;
  void TakeUp();
  std::vector<size_t> KeepWhatIsLeft();  // of the objects; removes the rest
  void AskForVersions(const std::vector<size_t>& indices);
  std::optional<storage::ManifestEntry> EntryOf(size_t index) const;
  bool IsThere(size_t index) const;
  bool IsChecked(size_t index) const;
  absl::Status CheckBytes(size_t index) const;

  void Work();
  size_t Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayCome(size_t index, bool is_asked_for) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t Expendable(bool also_ahead) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(size_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RemoveOne() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckOrFetch(size_t index) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Fetch(size_t index) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status FetchOnce(size_t index) const;

  storage::ObjectStore& store_;
  storage::Survey survey_;  // changes in TakeUp alone
  StreamOptions options_;
  std::atomic<bool> ending_ = false;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<Object> objects_ ABSL_GUARDED_BY(mutex_);  // as those of the survey
  std::deque<size_t> asked_for_ ABSL_GUARDED_BY(mutex_);
  std::map<Reader, std::deque<size_t>> ahead_ ABSL_GUARDED_BY(mutex_);
  uint64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  int fetching_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<storage::Activity::OnDisk> idle_ ABSL_GUARDED_BY(mutex_);  // nothing is fetched
  std::vector<std::thread> threads_;
};

}  // namespace tutti::stream
