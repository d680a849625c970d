#include "platform/storage/transfer/fetch_objects.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/file.h"
#include "base/machine/machine.h"
#include "base/status.h"
#include "base/threads/at_once.h"
#include "platform/storage/objects/content_hash.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/objects/object_version.h"
#include "platform/storage/transfer/fetch_folder.h"
#include "platform/storage/transfer/former_fetch.h"
#include "platform/storage/transfer/guarded.h"
#include "platform/storage/transfer/incoming_object.h"
#include "platform/storage/transfer/object_names.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

absl::Status Changed() {
  return absl::AbortedError("it has changed at the store while it was fetched: fetch it again");
}

// What has been fetched before, into this folder and into others.
struct FilesThere {
  ObjectManifest& manifest;
  const FormerFetches& formers;
};

// One fetch. Each of its threads takes the next piece of work until there is none: a range of a
// large object that has been opened, else the next object.
class Fetch {
 public:
  Fetch(ObjectStore& store, const Survey& survey, const FetchOptions& options,
        const FilesThere& there, ProgressCounter& counter)
      : store_(store),
        survey_(survey),
        options_(options),
        manifest_(there.manifest),
        formers_(there.formers),
        counter_(counter),
        boot_id_(base::BootId()),
        versions_(survey.objects) {}

  absl::Status Run() {
    const size_t threads = static_cast<size_t>(options_.connections);
    counter_.TellDuring([&] { base::ForEachAtOnce(threads, threads, [&](size_t) { Work(); }); },
                        options_.progress);
    absl::MutexLock lock(&mutex_);
    return failure_;
  }

  // Puts the files' names on the disk.
  absl::Status SyncFolders() {
    absl::MutexLock lock(&folders_mutex_);
    for (const fs::path& folder : folders_) TUTTI_RETURN_IF_ERROR(base::SyncDirectory(folder));
    return absl::OkStatus();
  }

  // Returns the objects in the versions that were fetched.
  const std::vector<StoredObject>& versions() const { return versions_; }

 private:
  using Incoming = std::shared_ptr<IncomingObject>;
  // A range of a large object, or an object to open.
  struct Piece {
    Incoming incoming;
    int64_t range = 0;
    size_t index = 0;
  };

  void Work();
  std::optional<Piece> Next();
  std::optional<Piece> NextIfAny() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Do(const Piece& piece, std::vector<char>& buffer);
  void Ended(const Piece& piece, const absl::Status& status);

  absl::Status BeginObject(size_t index, std::vector<char>& buffer);
  absl::StatusOr<bool> TakeWhatIsThere(size_t index);
  absl::Status FetchSmall(size_t index, ObjectReader& reader, std::vector<char>& buffer);
  absl::Status BeginLarge(size_t index, std::unique_ptr<ObjectReader> reader);
  absl::Status FetchRange(IncomingObject& incoming, int64_t range, std::vector<char>& buffer);
  absl::Status FinishLarge(IncomingObject& incoming, const ContentHash::Result& hash);
  absl::Status Note(size_t index, const std::string& sha256, const std::string& etag);

  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(size_t index);
  absl::Status Read(ObjectReader& reader, int64_t offset, std::span<char> out);
  bool WantsMd5(const ObjectReader& reader) const;
  absl::Status Verify(size_t index, ObjectReader& reader, const ContentHash::Result& hash);
  absl::Status SameWhenReadAgain(ObjectReader& reader, const std::string& sha256);
  absl::StatusOr<fs::path> TargetOf(size_t index);

  ObjectStore& store_;
  const Survey& survey_;
  const FetchOptions& options_;
  ObjectManifest& manifest_;
  const FormerFetches& formers_;
  ProgressCounter& counter_;
  const std::string boot_id_;
  std::atomic<bool> etags_are_no_md5_ = false;  // as was seen of one object

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<StoredObject> versions_;  // each by one thread
  size_t next_object_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t at_work_ ABSL_GUARDED_BY(mutex_) = 0;  // pieces, from which others may come
  std::deque<Incoming> incoming_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the first
  absl::Mutex folders_mutex_;
  std::set<fs::path> folders_ ABSL_GUARDED_BY(folders_mutex_);  // that are there
};

std::optional<Fetch::Piece> Fetch::NextIfAny() {
  while (!incoming_.empty()) {
    const Incoming incoming = incoming_.front();
    if (const auto range = incoming->NextRange()) return Piece{incoming, *range};
    incoming_.pop_front();
  }
  if (next_object_ == survey_.objects.size()) return std::nullopt;
  return Piece{nullptr, 0, next_object_++};
}

std::optional<Fetch::Piece> Fetch::Next() {
  absl::MutexLock lock(&mutex_);
  while (failure_.ok()) {
    if (auto piece = NextIfAny()) {
      ++at_work_;
      return piece;
    }
    if (at_work_ == 0) break;
    changed_.Wait(&mutex_);
  }
  return std::nullopt;
}

void Fetch::Ended(const Piece& piece, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  --at_work_;
  if (!status.ok() && failure_.ok()) {
    const size_t index = piece.incoming != nullptr ? piece.incoming->index() : piece.index;
    failure_ = AboutObject(status, survey_.objects[index].path);
  }
  changed_.SignalAll();
}

void Fetch::Work() {
  std::vector<char> buffer;
  while (const auto piece = Next()) Ended(*piece, Do(*piece, buffer));
}

// The other threads wait for what this piece leads to, so that it ends whatever is thrown.
absl::Status Fetch::Do(const Piece& piece, std::vector<char>& buffer) {
  return Guarded([&] {
    if (piece.incoming != nullptr) return FetchRange(*piece.incoming, piece.range, buffer);
    return BeginObject(piece.index, buffer);
  });
}

absl::StatusOr<std::unique_ptr<ObjectReader>> Fetch::Open(size_t index) {
  const std::string path = survey_.PathInContainer(survey_.objects[index]);
  auto reader = options_.attempts.Run([&] { return store_.Open(path); });
  if (absl::IsNotFound(reader.status())) {
    return absl::AbortedError("it was removed at the store while the folder was fetched");
  }
  return reader;
}

absl::Status Fetch::Read(ObjectReader& reader, int64_t offset, std::span<char> out) {
  const absl::Status status = options_.attempts.Run([&] { return reader.Read(offset, out); });
  return absl::IsNotFound(status) ? Changed() : status;
}

absl::Status Fetch::BeginObject(size_t index, std::vector<char>& buffer) {
  StoredObject& version = versions_[index];
  if (IsSettled(version, options_.settled_before)) {
    TUTTI_ASSIGN_OR_RETURN(const bool is_there, TakeWhatIsThere(index));
    if (is_there) return absl::OkStatus();
  }
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, Open(index));
  TakeAnswer(reader->object(), version);
  TUTTI_ASSIGN_OR_RETURN(const bool is_there, TakeWhatIsThere(index));
  if (is_there) return absl::OkStatus();
  if (version.bytes > options_.range_bytes) return BeginLarge(index, std::move(reader));
  return FetchSmall(index, *reader, buffer);
}

// Returns whether nothing has to be fetched of the object, by what is known of it so far.
absl::StatusOr<bool> Fetch::TakeWhatIsThere(size_t index) {
  const StoredObject& version = versions_[index];
  const bool is_settled = IsSettled(version, options_.settled_before);
  std::optional<ManifestEntry> there = manifest_.Find(version, is_settled);
  const bool is_noted = there.has_value() && (there->modified > 0 || !is_settled);
  if (!there.has_value()) {
    if (!formers_.Has(version, is_settled)) return false;
    TUTTI_ASSIGN_OR_RETURN(const fs::path target, TargetOf(index));
    const Activity::OnDisk on_disk(options_.attempts.activity);
    TUTTI_ASSIGN_OR_RETURN(there, formers_.LinkTo(version, is_settled, options_.folder, target));
    if (!there.has_value()) return false;
  }
  // One that is settled meanwhile need not be asked for again.
  if (!is_noted) TUTTI_RETURN_IF_ERROR(Note(index, there->sha256, there->etag));
  if (options_.attempts.activity != nullptr) options_.attempts.activity->Note();
  counter_.AddBytes(version.bytes);
  counter_.AddObject();
  return true;
}

bool Fetch::WantsMd5(const ObjectReader& reader) const {
  return !reader.object().md5.empty() && (reader.md5_is_certain() || !etags_are_no_md5_);
}

absl::Status Fetch::FetchSmall(size_t index, ObjectReader& reader, std::vector<char>& buffer) {
  const StoredObject& version = versions_[index];
  buffer.resize(std::max(buffer.size(), static_cast<size_t>(version.bytes)));
  const std::span<char> bytes(buffer.data(), version.bytes);
  if (!bytes.empty()) TUTTI_RETURN_IF_ERROR(Read(reader, 0, bytes));
  ContentHash hash(WantsMd5(reader));
  hash.Update({bytes.data(), bytes.size()});
  const ContentHash::Result result = hash.Finish();
  TUTTI_RETURN_IF_ERROR(Verify(index, reader, result));
  TUTTI_ASSIGN_OR_RETURN(const fs::path target, TargetOf(index));
  {
    const Activity::OnDisk on_disk(options_.attempts.activity);
    TUTTI_RETURN_IF_ERROR(WriteWhole(options_.folder, version, bytes, target));
  }
  counter_.AddBytes(version.bytes);
  counter_.AddObject();
  return Note(index, result.sha256, version.etag);
}

absl::Status Fetch::BeginLarge(size_t index, std::unique_ptr<ObjectReader> reader) {
  TUTTI_ASSIGN_OR_RETURN(
      auto part, PartFile::Open(options_.folder, versions_[index], options_.range_bytes, boot_id_));
  const bool with_md5 = WantsMd5(*reader);
  const auto incoming = std::make_shared<IncomingObject>(index, std::move(reader), std::move(part),
                                                         with_md5, options_.attempts.activity);
  counter_.AddBytes(incoming->bytes_before());
  {
    absl::MutexLock lock(&mutex_);
    incoming_.push_back(incoming);
    changed_.SignalAll();
  }
  // All ranges may be there.
  TUTTI_ASSIGN_OR_RETURN(const auto hash, incoming->TakeIn(-1, {}));
  return hash.has_value() ? FinishLarge(*incoming, *hash) : absl::OkStatus();
}

absl::Status Fetch::FetchRange(IncomingObject& incoming, int64_t range, std::vector<char>& buffer) {
  PartFile& part = incoming.part();
  buffer.resize(std::max(buffer.size(), static_cast<size_t>(options_.range_bytes)));
  const std::span<char> bytes(buffer.data(), part.RangeBytes(range));
  TUTTI_RETURN_IF_ERROR(Read(incoming.reader(), part.OffsetOf(range), bytes));
  TUTTI_RETURN_IF_ERROR(part.Write(range, bytes));
  counter_.AddBytes(static_cast<int64_t>(bytes.size()));
  TUTTI_ASSIGN_OR_RETURN(const auto hash, incoming.TakeIn(range, bytes));
  return hash.has_value() ? FinishLarge(incoming, *hash) : absl::OkStatus();
}

absl::Status Fetch::FinishLarge(IncomingObject& incoming, const ContentHash::Result& hash) {
  const size_t index = incoming.index();
  if (const absl::Status status = Verify(index, incoming.reader(), hash); !status.ok()) {
    if (!absl::IsUnavailable(status)) incoming.part().Discard();
    return status;
  }
  TUTTI_ASSIGN_OR_RETURN(const fs::path target, TargetOf(index));
  {
    const Activity::OnDisk on_disk(options_.attempts.activity);
    TUTTI_RETURN_IF_ERROR(incoming.part().Finish(target));
  }
  counter_.AddObject();
  return Note(index, hash.sha256, versions_[index].etag);
}

absl::Status Fetch::Note(size_t index, const std::string& sha256, const std::string& etag) {
  const StoredObject& version = versions_[index];
  const bool is_settled = IsSettled(version, options_.settled_before);
  return manifest_.Add(version.path,
                       {version.bytes, etag, sha256, is_settled ? version.modified : 0});
}

absl::Status Fetch::SameWhenReadAgain(ObjectReader& reader, const std::string& sha256) {
  ContentHash hash(false);
  std::vector<char> block(options_.range_bytes);
  const int64_t end = reader.object().bytes;
  for (int64_t at = 0; at < end; at += options_.range_bytes) {
    const std::span<char> bytes(block.data(), std::min(options_.range_bytes, end - at));
    TUTTI_RETURN_IF_ERROR(Read(reader, at, bytes));
    hash.Update({bytes.data(), bytes.size()});
  }
  if (hash.Finish().sha256 == sha256) return absl::OkStatus();
  return absl::DataLossError("its bytes differ each time that they are read");
}

// What came is the version that was opened: by its MD5, or since it is still the store's.
absl::Status Fetch::Verify(size_t index, ObjectReader& reader, const ContentHash::Result& hash) {
  const bool has_md5 = !hash.md5.empty();
  if (has_md5 && hash.md5 == reader.object().md5) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const auto after, Open(index));
  if (after->object().etag != reader.object().etag) return Changed();
  if (!has_md5) return absl::OkStatus();
  if (reader.md5_is_certain()) {
    return absl::DataLossError(absl::StrCat("what came has the MD5 ", hash.md5,
                                            ", and the store says ", reader.object().md5));
  }
  if (!etags_are_no_md5_) TUTTI_RETURN_IF_ERROR(SameWhenReadAgain(reader, hash.sha256));
  etags_are_no_md5_ = true;
  return absl::OkStatus();
}

absl::StatusOr<fs::path> Fetch::TargetOf(size_t index) {
  fs::path target = options_.folder / versions_[index].path;
  absl::MutexLock lock(&folders_mutex_);
  if (!folders_.contains(target.parent_path())) {
    TUTTI_RETURN_IF_ERROR(base::MakeDirectories(target.parent_path()));
    folders_.insert(target.parent_path());
  }
  return target;
}

int64_t BytesOf(const std::vector<StoredObject>& objects) {
  int64_t bytes = 0;
  for (const StoredObject& object : objects) bytes += object.bytes;
  return bytes;
}

}  // namespace

absl::StatusOr<StorageDone> FetchObjects(ObjectStore& store, const Survey& survey,
                                         const FetchOptions& options) {
  TUTTI_RETURN_IF_ERROR(CheckNames(survey.objects));
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(options.folder / kPartsName));
  TUTTI_ASSIGN_OR_RETURN(const auto manifest, ObjectManifest::Open(options.folder));
  const FormerFetches formers(options.formers, survey.base);
  TUTTI_RETURN_IF_ERROR(CheckFreeSpace(survey, options.folder, *manifest, formers));
  {
    const Activity::OnDisk on_disk(options.attempts.activity);
    RemoveStale(options.folder, survey, *manifest);
  }
  ProgressCounter counter(static_cast<int64_t>(survey.objects.size()), BytesOf(survey.objects));
  Fetch fetch(store, survey, options, {*manifest, formers}, counter);
  TUTTI_RETURN_IF_ERROR(fetch.Run());
  const Activity::OnDisk on_disk(options.attempts.activity);
  TUTTI_RETURN_IF_ERROR(fetch.SyncFolders());
  TUTTI_RETURN_IF_ERROR(Tidy(options.folder, fetch.versions(), *manifest));
  const StorageProgress end = counter.Now();
  return StorageDone{end.objects, BytesOf(fetch.versions()),
                     DigestOf(fetch.versions(), options.settled_before)};
}

}  // namespace tutti::storage
