#include "platform/storage/transfer/fetch_objects.h"

#include <fcntl.h>

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
#include "base/hash.h"
#include "base/status.h"
#include "base/threads/at_once.h"
#include "platform/storage/objects/content_hash.h"
#include "platform/storage/objects/guarded.h"
#include "platform/storage/objects/object_manifest.h"
#include "platform/storage/objects/object_version.h"
#include "platform/storage/peers/piece_exchange.h"
#include "platform/storage/transfer/fetch_folder.h"
#include "platform/storage/transfer/former_fetch.h"
#include "platform/storage/transfer/incoming_object.h"
#include "platform/storage/transfer/object_names.h"
#include "platform/storage/transfer/part_file.h"

namespace tutti::storage {
namespace {

namespace fs = std::filesystem;

constexpr int kMostGroups = 8;  // of other nodes, each with threads of its own
constexpr size_t kLeastOfStore = 2;
constexpr size_t kStreamBlock = 128 << 10;  // of a range that is written as it comes
constexpr char kNoVersion[] = "?";          // of a piece that a peer is not given: no store's ETag

absl::Status ChangedWhileFetched() {
  return absl::AbortedError("it has changed at the store while it was fetched: fetch it again");
}

// FilesThere is what has been fetched before, into this folder and into others, and by other nodes.
struct FilesThere {
  ObjectManifest& manifest;
  const FormerFetches& formers;
  PieceExchange& exchange;
};

// Fetch is one fetch. Each of its threads takes the next piece of work until there is none: the
// next range of the large object that it has read last, which it can hash as it comes; else the
// next object; else a range of an object that others read. Of a gang some threads fetch this node's
// pieces from the store, and open large objects, and wait for no other node; the others ask the
// other nodes for theirs.
class Fetch {
 public:
  Fetch(ObjectStore& store, const Survey& survey, const FetchOptions& options,
        const FilesThere& there, ProgressCounter& counter)
      : store_(store),
        survey_(survey),
        options_(options),
        manifest_(there.manifest),
        formers_(there.formers),
        exchange_(there.exchange),
        counter_(counter),
        boot_id_(ThisBoot()),
        versions_(survey.objects),
        next_small_(std::min(exchange_.map().nodes() - 1, kMostGroups), 0) {}

  absl::Status Run() {
    const auto connections = static_cast<size_t>(options_.connections);
    // All nodes together ask the store as one alone does. Of more pieces at the same time each
    // would come later, and so go on to the others.
    const auto nodes = static_cast<size_t>(exchange_.map().nodes());
    const size_t of_store =
        exchange_.has_peers() ? std::min(connections, std::max(connections / nodes, kLeastOfStore))
                              : connections;
    const size_t of_peers =
        exchange_.has_peers() ? std::max(connections - of_store, next_small_.size()) : 0;
    const auto work = [&](size_t i) {
      Work(i < of_store ? kStore : static_cast<int>((i - of_store) % next_small_.size()));
    };
    counter_.ReportDuring(
        [&] { base::ForEachAtOnce(of_store + of_peers, of_store + of_peers, work); },
        options_.progress);
    absl::MutexLock lock(&mutex_);
    return failure_;
  }

  // Returns the objects in the versions that were fetched.
  const std::vector<StoredObject>& versions() const { return versions_; }

 private:
  using Incoming = std::shared_ptr<IncomingObject>;
  // A Source is where a piece comes from: the store, or a group of other nodes, by its number.
  using Source = int;
  static constexpr Source kStore = -1;
  // Piece is a range of a large object, or an object to open.
  struct Piece {
    Incoming incoming;
    int64_t range = 0;
    size_t index = 0;
    Source source = kStore;
  };

  // OfThread is what a thread keeps from piece to piece.
  struct OfThread {
    std::vector<char> buffer;
    Incoming last;  // large object that it has opened or read, while ranges of it are left
  };

  void Work(Source source);
  std::optional<Piece> Next(Source source, const Incoming& last);
  std::optional<Piece> NextIfAny(Source source, const Incoming& last)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Piece> RangeOf(const Incoming& incoming, Source source) const;
  std::optional<Piece> NextObject(Source source) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MoreMayCome(Source source) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Source SourceOf(size_t index, int64_t range) const;
  absl::Status Do(const Piece& piece, OfThread& own);
  void Ended(const Piece& piece, const absl::Status& status);

  absl::Status BeginObject(size_t index, OfThread& own);
  absl::StatusOr<bool> TakeWhatIsThere(size_t index);
  absl::Status FetchSmall(size_t index, ObjectReader& reader, std::vector<char>& buffer);
  absl::Status BeginLarge(size_t index, std::unique_ptr<ObjectReader> reader, OfThread& own);
  absl::Status FetchRange(IncomingObject& incoming, int64_t range, std::vector<char>& buffer);
  absl::Status StreamRange(IncomingObject& incoming, int64_t range, std::vector<char>& buffer);
  absl::Status FinishLarge(IncomingObject& incoming, const ContentHash::Result& hash);
  absl::Status FetchLargeAgain(size_t index, ObjectReader& reader);
  absl::Status Keep(size_t index, PartFile& part, const ContentHash::Result& hash);
  absl::Status Note(size_t index, const std::string& sha256, const std::string& etag);

  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(size_t index, bool whole = false);
  bool MayBeThere(const StoredObject& version) const;
  absl::Status Read(ObjectReader& reader, int64_t offset, std::span<char> out);
  absl::StatusOr<bool> ReadPiece(size_t index, int64_t range, ObjectReader& reader,
                                 std::span<char> out);
  void PublishWhatIsThere(size_t index, const std::string& sha256);
  ContentHash::Kinds HashesOf(const ObjectReader& reader) const;
  absl::Status Verify(size_t index, ObjectReader& reader, const ContentHash::Result& hash);
  absl::Status SameWhenReadAgain(ObjectReader& reader, const std::string& sha256);
  absl::StatusOr<fs::path> TargetOf(size_t index);

  ObjectStore& store_;
  const Survey& survey_;
  const FetchOptions& options_;
  ObjectManifest& manifest_;
  const FormerFetches& formers_;
  PieceExchange& exchange_;
  ProgressCounter& counter_;
  const std::string boot_id_;
  std::atomic<bool> etags_are_no_md5_ = false;  // as was seen of one object

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::vector<StoredObject> versions_;              // each by one thread
  size_t next_object_ ABSL_GUARDED_BY(mutex_) = 0;  // of the store's, and of large ones
  std::vector<size_t> next_small_;                  // of each group's; by mutex_
  size_t at_work_ ABSL_GUARDED_BY(mutex_) = 0;      // pieces of kStore, from which others may come
  std::deque<Incoming> incoming_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the first
  absl::Mutex folders_mutex_;
  std::set<fs::path> folders_ ABSL_GUARDED_BY(folders_mutex_);  // that are there
};

Fetch::Source Fetch::SourceOf(size_t index, int64_t range) const {
  const PieceMap& map = exchange_.map();
  const int owner = map.OwnerOf(map.PieceOf(index, range));
  if (owner == map.node()) return kStore;
  // Each node begins with the one that follows it.
  const int distance = (owner - map.node() - 1 + map.nodes()) % map.nodes();
  return distance % static_cast<int>(next_small_.size());
}

std::optional<Fetch::Piece> Fetch::RangeOf(const Incoming& incoming, Source source) const {
  const auto range =
      incoming->NextRange([&](int64_t one) { return SourceOf(incoming->index(), one) == source; });
  if (!range) return std::nullopt;
  return Piece{incoming, *range, incoming->index(), source};
}

// Nodes of a gang go through the objects in one order, so that each has what others wait for.
std::optional<Fetch::Piece> Fetch::NextIfAny(Source source, const Incoming& last) {
  // Wherever it is: each has open files, and one before it may be slow.
  std::erase_if(incoming_, [](const Incoming& one) { return one->AllRangesTaken(); });
  if (!exchange_.has_peers()) {
    if (last != nullptr) {
      if (auto piece = RangeOf(last, source)) return piece;
    }
    if (auto piece = NextObject(source)) return piece;
  }
  for (const Incoming& incoming : incoming_) {
    if (auto piece = RangeOf(incoming, source)) return piece;
  }
  return NextObject(source);
}

// A large object is opened by who asks the store; a small one is all of one piece.
std::optional<Fetch::Piece> Fetch::NextObject(Source source) {
  size_t& next = source == kStore ? next_object_ : next_small_[static_cast<size_t>(source)];
  for (; next < survey_.objects.size(); ++next) {
    const bool is_for =
        exchange_.map().IsLarge(next) ? source == kStore : SourceOf(next, 0) == source;
    if (is_for) return Piece{nullptr, 0, next++, source};
  }
  return std::nullopt;
}

// Returns whether an object that somebody opens now, or will, may have ranges of that source.
bool Fetch::MoreMayCome(Source source) const {
  return at_work_ > 0 || (source != kStore && next_object_ < survey_.objects.size());
}

std::optional<Fetch::Piece> Fetch::Next(Source source, const Incoming& last) {
  absl::MutexLock lock(&mutex_);
  while (failure_.ok()) {
    if (auto piece = NextIfAny(source, last)) {
      at_work_ += source == kStore ? 1 : 0;
      return piece;
    }
    if (!MoreMayCome(source)) break;
    changed_.Wait(&mutex_);
  }
  changed_.SignalAll();  // who looks for ranges of objects waits for the last one to be opened
  return std::nullopt;
}

void Fetch::Ended(const Piece& piece, const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  at_work_ -= piece.source == kStore ? 1 : 0;
  if (!status.ok() && failure_.ok()) {
    const size_t index = piece.incoming != nullptr ? piece.incoming->index() : piece.index;
    failure_ = AboutObject(status, survey_.objects[index].path);
  }
  changed_.SignalAll();
}

void Fetch::Work(Source source) {
  OfThread own;
  while (const auto piece = Next(source, own.last)) {
    Ended(*piece, Do(*piece, own));
    if (own.last != nullptr && own.last->AllRangesTaken()) own.last.reset();
  }
}

// The other threads wait for what this piece leads to, so that it ends whatever is thrown.
absl::Status Fetch::Do(const Piece& piece, OfThread& own) {
  own.last = piece.incoming;
  return Guarded([&] {
    if (piece.incoming != nullptr) return FetchRange(*piece.incoming, piece.range, own.buffer);
    return BeginObject(piece.index, own);
  });
}

// `whole`: an object that is not large is read next.
absl::StatusOr<std::unique_ptr<ObjectReader>> Fetch::Open(size_t index, bool whole) {
  const StoredObject& object = survey_.objects[index];
  const std::string path = survey_.PathInContainer(object);
  auto reader = options_.attempts.Run(
      [&] { return whole ? store_.OpenWhole(path, object.bytes) : store_.Open(path); });
  if (absl::IsNotFound(reader.status())) {
    return absl::AbortedError("it was removed at the store while the folder was fetched");
  }
  return reader;
}

absl::Status Fetch::Read(ObjectReader& reader, int64_t offset, std::span<char> out) {
  const absl::Status status = options_.attempts.Run([&] { return reader.Read(offset, out); });
  return absl::IsNotFound(status) ? ChangedWhileFetched() : status;
}

// Another node has it from the store, or the store itself. Returns whether a node gave it.
absl::StatusOr<bool> Fetch::ReadPiece(size_t index, int64_t range, ObjectReader& reader,
                                      std::span<char> out) {
  const PieceMap& map = exchange_.map();
  const int64_t piece = map.PieceOf(index, range);
  const std::string& etag = reader.object().etag;
  if (!map.IsOwn(piece)) {
    const absl::Status fetched = exchange_.Fetch(piece, etag, out);
    if (options_.attempts.activity != nullptr) options_.attempts.activity->Note();
    if (fetched.ok()) return true;
  }
  TUTTI_RETURN_IF_ERROR(Read(reader, range * options_.range_bytes, out));
  return false;
}

// Publishes an object that is there by its size, although the disk may have lost its content. An
// object of a single piece is checked by the hash that was noted when it arrived; no piece of
// another object has one, so that the store is asked.
void Fetch::PublishWhatIsThere(size_t index, const std::string& sha256) {
  if (!exchange_.has_peers()) return;
  const int64_t range_bytes = options_.range_bytes;
  const int64_t ranges =
      std::max<int64_t>(1, (survey_.objects[index].bytes + range_bytes - 1) / range_bytes);
  const bool is_checked = ranges == 1 && !sha256.empty();
  for (int64_t range = 0; range < ranges; ++range) {
    exchange_.Publish(exchange_.map().PieceOf(index, range),
                      is_checked ? versions_[index].etag : kNoVersion, is_checked ? sha256 : "");
  }
}

absl::Status Fetch::BeginObject(size_t index, OfThread& own) {
  StoredObject& version = versions_[index];
  if (IsSettled(version, options_.settled_before)) {
    TUTTI_ASSIGN_OR_RETURN(const bool is_there, TakeWhatIsThere(index));
    if (is_there) return absl::OkStatus();
  }
  // For an object that is not fetched from the store, or may be here, the content would be sent in
  // vain.
  const bool whole = version.bytes > 0 && version.bytes <= options_.range_bytes &&
                     exchange_.map().IsOwn(exchange_.map().PieceOf(index, 0)) &&
                     !MayBeThere(version);
  TUTTI_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> reader, Open(index, whole));
  TakeAnswer(reader->object(), version);
  // Its pieces would be others than the other nodes have.
  if (exchange_.has_peers() && version.bytes != survey_.objects[index].bytes)
    return ChangedWhileFetched();
  TUTTI_ASSIGN_OR_RETURN(const bool is_there, TakeWhatIsThere(index));
  if (is_there) return absl::OkStatus();
  if (version.bytes > options_.range_bytes) return BeginLarge(index, std::move(reader), own);
  return FetchSmall(index, *reader, own.buffer);
}

bool Fetch::MayBeThere(const StoredObject& version) const {
  return manifest_.HasLike(version) || formers_.HasLike(version);
}

// Returns whether nothing has to be fetched of the object, by what is known of it so far.
absl::StatusOr<bool> Fetch::TakeWhatIsThere(size_t index) {
  const StoredObject& version = versions_[index];
  const bool is_settled = IsSettled(version, options_.settled_before);
  std::optional<ManifestEntry> there;
  {
    // Find may read the whole file.
    const Activity::OnDisk on_disk(options_.attempts.activity);
    there = manifest_.Find(version, is_settled, [this] {
      if (options_.attempts.activity != nullptr) options_.attempts.activity->Note();
    });
  }
  // What was read once need not be read again after a fetch that ends early.
  const bool is_noted =
      there.has_value() && (there->modified > 0 || !is_settled) && !MayBeLost(*there);
  if (!there.has_value()) {
    if (!formers_.Has(version, is_settled)) return false;
    TUTTI_ASSIGN_OR_RETURN(const fs::path target, TargetOf(index));
    const Activity::OnDisk on_disk(options_.attempts.activity);
    TUTTI_ASSIGN_OR_RETURN(there, formers_.LinkTo(version, is_settled, options_.folder, target));
    if (!there.has_value()) return false;
  }
  // One that is settled meanwhile need not be asked for again.
  if (!is_noted) TUTTI_RETURN_IF_ERROR(Note(index, there->sha256, there->etag));
  if (versions_[index].etag.empty()) versions_[index].etag = there->etag;
  PublishWhatIsThere(index, there->sha256);
  if (options_.attempts.activity != nullptr) options_.attempts.activity->Note();
  counter_.AddBytes(version.bytes);
  counter_.AddObject();
  return true;
}

// Returns the hashes that verify an object. A strong checksum proves more than an ETag that may be
// no MD5, for less processor time.
ContentHash::Kinds Fetch::HashesOf(const ObjectReader& reader) const {
  const ChecksumKind kind = reader.checksum().kind;
  const bool may_be_md5 = reader.md5_is_certain() || (!etags_are_no_md5_ && !IsStrong(kind));
  return {!reader.object().md5.empty() && may_be_md5, kind};
}

absl::Status Fetch::FetchSmall(size_t index, ObjectReader& reader, std::vector<char>& buffer) {
  const StoredObject& version = versions_[index];
  absl::string_view bytes = reader.content().value_or("");
  bool is_of_peer = false;
  std::span<char> read;
  if (!reader.content().has_value() && version.bytes > 0) {
    buffer.resize(std::max(buffer.size(), static_cast<size_t>(version.bytes)));
    read = {buffer.data(), static_cast<size_t>(version.bytes)};
    TUTTI_ASSIGN_OR_RETURN(is_of_peer, ReadPiece(index, 0, reader, read));
    bytes = {read.data(), read.size()};
  }
  const auto hash_of_bytes = [&] {
    ContentHash hash(HashesOf(reader));
    hash.Update(bytes);
    return hash.Finish();
  };
  ContentHash::Result result = hash_of_bytes();
  absl::Status verified = Verify(index, reader, result);
  if (is_of_peer && absl::IsDataLoss(verified)) {
    TUTTI_RETURN_IF_ERROR(Read(reader, 0, read));
    result = hash_of_bytes();
    verified = Verify(index, reader, result);
  }
  TUTTI_RETURN_IF_ERROR(verified);
  TUTTI_ASSIGN_OR_RETURN(const fs::path target, TargetOf(index));
  {
    const Activity::OnDisk on_disk(options_.attempts.activity);
    TUTTI_RETURN_IF_ERROR(WriteWhole(options_.folder, version, bytes, target));
  }
  exchange_.Publish(exchange_.map().PieceOf(index, 0), version.etag, result.sha256);
  counter_.AddBytes(version.bytes);
  counter_.AddObject();
  return Note(index, result.sha256, version.etag);
}

absl::Status Fetch::BeginLarge(size_t index, std::unique_ptr<ObjectReader> reader, OfThread& own) {
  TUTTI_ASSIGN_OR_RETURN(
      auto part, PartFile::Open(options_.folder, versions_[index], options_.range_bytes, boot_id_));
  const ContentHash::Kinds hashes = HashesOf(*reader);
  const auto incoming = std::make_shared<IncomingObject>(index, std::move(reader), std::move(part),
                                                         hashes, options_.attempts.activity);
  counter_.AddBytes(incoming->bytes_before());
  for (int64_t range = 0; range < incoming->part().range_count(); ++range) {
    if (!incoming->part().WasThere(range)) continue;
    exchange_.Publish(exchange_.map().PieceOf(index, range), incoming->reader().object().etag, "");
  }
  {
    absl::MutexLock lock(&mutex_);
    incoming_.push_back(incoming);
    own.last = incoming;
    changed_.SignalAll();
  }
  // All ranges may be there.
  TUTTI_ASSIGN_OR_RETURN(const auto hash, incoming->TakeIn(-1, {}));
  return hash.has_value() ? FinishLarge(*incoming, *hash) : absl::OkStatus();
}

// Block by block, while each is in the processor's cache. What came before a failure that passes
// stays.
absl::Status Fetch::StreamRange(IncomingObject& incoming, int64_t range,
                                std::vector<char>& buffer) {
  PartFile& part = incoming.part();
  const int64_t begin = part.OffsetOf(range), bytes = part.RangeBytes(range);
  const bool hashes = incoming.BeginHashing(range);
  buffer.resize(std::max(buffer.size(), kStreamBlock));
  size_t in_buffer = 0;
  int64_t kept = 0;
  const auto keep = [&] {
    const absl::string_view block(buffer.data(), in_buffer);
    TUTTI_RETURN_IF_ERROR(part.WritePiece(begin + kept, block));
    if (hashes) incoming.Hash(block);
    kept += static_cast<int64_t>(in_buffer);
    in_buffer = 0;
    return absl::OkStatus();
  };
  const auto take = [&](absl::string_view piece) {
    while (!piece.empty()) {
      const size_t some = std::min(piece.size(), kStreamBlock - in_buffer);
      std::copy_n(piece.data(), some, buffer.data() + in_buffer);
      piece.remove_prefix(some);
      in_buffer += some;
      if (in_buffer == kStreamBlock) TUTTI_RETURN_IF_ERROR(keep());
    }
    return absl::OkStatus();
  };
  const absl::Status status = options_.attempts.Run([&] {
    const int64_t got = kept + static_cast<int64_t>(in_buffer);
    return incoming.reader().Stream(begin + got, bytes - got, take);
  });
  if (absl::IsNotFound(status)) return ChangedWhileFetched();
  TUTTI_RETURN_IF_ERROR(status);
  TUTTI_RETURN_IF_ERROR(keep());
  TUTTI_RETURN_IF_ERROR(part.NoteWritten(range));
  counter_.AddBytes(bytes);
  TUTTI_ASSIGN_OR_RETURN(const auto hash,
                         hashes ? incoming.TakeInHashed(range) : incoming.TakeIn(range, {}));
  return hash.has_value() ? FinishLarge(incoming, *hash) : absl::OkStatus();
}

absl::Status Fetch::FetchRange(IncomingObject& incoming, int64_t range, std::vector<char>& buffer) {
  // Other nodes are given a range by its hash.
  if (incoming.reader().streams() && !exchange_.has_peers()) {
    return StreamRange(incoming, range, buffer);
  }
  PartFile& part = incoming.part();
  buffer.resize(std::max(buffer.size(), static_cast<size_t>(options_.range_bytes)));
  const std::span<char> bytes(buffer.data(), part.RangeBytes(range));
  TUTTI_ASSIGN_OR_RETURN(const bool is_of_peer,
                         ReadPiece(incoming.index(), range, incoming.reader(), bytes));
  if (is_of_peer) incoming.NotePeer();
  TUTTI_RETURN_IF_ERROR(part.Write(range, bytes));
  if (const int64_t piece = exchange_.map().PieceOf(incoming.index(), range);
      exchange_.has_peers() && exchange_.map().IsOwn(piece)) {
    exchange_.Publish(piece, incoming.reader().object().etag,
                      base::Hex(base::Sha256Of({bytes.data(), bytes.size()})));
  }
  counter_.AddBytes(static_cast<int64_t>(bytes.size()));
  TUTTI_ASSIGN_OR_RETURN(const auto hash, incoming.TakeIn(range, bytes));
  return hash.has_value() ? FinishLarge(incoming, *hash) : absl::OkStatus();
}

absl::Status Fetch::FinishLarge(IncomingObject& incoming, const ContentHash::Result& hash) {
  const size_t index = incoming.index();
  const absl::Status status = Verify(index, incoming.reader(), hash);
  if (status.ok()) return Keep(index, incoming.part(), hash);
  if (!absl::IsUnavailable(status)) incoming.part().Discard();
  if (!absl::IsDataLoss(status) || !incoming.MayHaveOfPeers()) return status;
  return FetchLargeAgain(index, incoming.reader());
}

// Fetches all of it from the store, by this thread alone: the others may have nothing more to do
// and be gone.
absl::Status Fetch::FetchLargeAgain(size_t index, ObjectReader& reader) {
  TUTTI_ASSIGN_OR_RETURN(const auto part, PartFile::Open(options_.folder, versions_[index],
                                                         options_.range_bytes, boot_id_));
  ContentHash hash(HashesOf(reader));
  std::vector<char> buffer(static_cast<size_t>(options_.range_bytes));
  for (int64_t range = 0; range < part->range_count(); ++range) {
    const std::span<char> bytes(buffer.data(), static_cast<size_t>(part->RangeBytes(range)));
    TUTTI_RETURN_IF_ERROR(Read(reader, part->OffsetOf(range), bytes));
    TUTTI_RETURN_IF_ERROR(part->Write(range, bytes));
    hash.Update({bytes.data(), bytes.size()});
  }
  const ContentHash::Result result = hash.Finish();
  if (const absl::Status status = Verify(index, reader, result); !status.ok()) {
    if (!absl::IsUnavailable(status)) part->Discard();
    return status;
  }
  return Keep(index, *part, result);
}

absl::Status Fetch::Keep(size_t index, PartFile& part, const ContentHash::Result& hash) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path target, TargetOf(index));
  {
    const Activity::OnDisk on_disk(options_.attempts.activity);
    TUTTI_RETURN_IF_ERROR(part.Finish(target));
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
  ContentHash hash(ContentHash::Kinds{});
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

// Checks that the version that was opened has arrived: by its checksum and its MD5, as far as there
// are any, or since each answer was of that version, or since the store still has it.
absl::Status Fetch::Verify(size_t index, ObjectReader& reader, const ContentHash::Result& hash) {
  const Checksum& told = reader.checksum();
  const bool has_md5 = !hash.md5.empty();
  const bool has_checksum = hash.checksum.kind != ChecksumKind::kNone;
  const bool md5_is_right = has_md5 && hash.md5 == reader.object().md5;
  const bool checksum_is_right = has_checksum && hash.checksum == told;
  if (md5_is_right && !has_checksum) return absl::OkStatus();
  if (checksum_is_right && (!has_md5 || md5_is_right || !reader.md5_is_certain())) {
    if (has_md5 && !md5_is_right) etags_are_no_md5_ = true;
    return absl::OkStatus();
  }
  const bool has_hash = has_md5 || has_checksum;
  if (!has_hash && reader.is_of_one_version()) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const auto after, Open(index));
  if (after->object().etag != reader.object().etag) return ChangedWhileFetched();
  if (has_checksum && !checksum_is_right) {
    return absl::DataLossError(absl::StrCat("what came has the checksum ", TextOf(hash.checksum),
                                            ", and the store says ", TextOf(told)));
  }
  if (!has_md5) return absl::OkStatus();
  if (reader.md5_is_certain()) {
    return absl::DataLossError(absl::StrCat("what came has the MD5 ", hash.md5,
                                            ", and the store says ", reader.object().md5));
  }
  // This needs a reader that asks the store: content that came with an answer would be the same
  // each time.
  if (!etags_are_no_md5_) TUTTI_RETURN_IF_ERROR(SameWhenReadAgain(*after, hash.sha256));
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
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd folder,
                         base::Open(options.folder, O_RDONLY | O_DIRECTORY));
  TUTTI_ASSIGN_OR_RETURN(const auto manifest, ObjectManifest::Open(options.folder));
  const FormerFetches formers(options.formers, survey.base);
  const FetchedBefore before{*manifest, formers, options.settled_before};
  TUTTI_RETURN_IF_ERROR(CheckFreeSpace(survey, options.folder, before));
  {
    const Activity::OnDisk on_disk(options.attempts.activity);
    RemoveStale(options.folder, survey, *manifest);
  }
  ProgressCounter counter(static_cast<int64_t>(survey.objects.size()), BytesOf(survey.objects));
  PieceExchange exchange(
      options.peers, survey.objects, DigestOf(survey.objects, options.settled_before),
      options.range_bytes, [&](const PieceMap::Place& place, std::span<char> out) {
        return ReadFetched(options.folder, survey.objects[place.object], place.offset, out);
      });
  Fetch fetch(store, survey, options, {*manifest, formers, exchange}, counter);
  TUTTI_RETURN_IF_ERROR(WithLackingOf(fetch.Run(), survey, options.folder, before));
  const Activity::OnDisk on_disk(options.attempts.activity);
  if (const UnsyncedFiles unsynced = SyncFiles(options.folder, folder.get(), survey, *manifest);
      !unsynced.status.ok()) {
    RemoveUnsynced(options.folder, unsynced.paths, *manifest);
    return WithLackingOf(unsynced.status, survey, options.folder, before);
  }
  exchange.AwaitOthers();
  TUTTI_RETURN_IF_ERROR(Tidy(options.folder, fetch.versions(), *manifest));
  const StorageProgress end = counter.Now();
  return StorageDone{end.objects, BytesOf(fetch.versions()),
                     DigestOf(fetch.versions(), options.settled_before)};
}

}  // namespace tutti::storage
