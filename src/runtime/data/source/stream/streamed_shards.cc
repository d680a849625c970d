#include "runtime/data/source/stream/streamed_shards.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text/binary_size.h"
#include "runtime/data/annotation/annotation.h"
#include "runtime/data/source/classes.h"
#include "runtime/data/source/tar/tar_shards.h"

namespace tutti::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostIndex = 64 << 20;
constexpr size_t kMostAhead = 16;   // shards that are asked for beyond those that are read now
constexpr size_t kOpenedAhead = 2;  // shards of these that are opened
constexpr int kTriesToOpen = 3;     // if a file goes between the answer and the opening

// The splits that have an index or a first shard there.
std::set<std::string> SplitsOf(const std::vector<StreamedFile>& files) {
  std::set<std::string> splits;
  for (const StreamedFile& file : files) {
    absl::string_view name = file.path;
    if (absl::ConsumeSuffix(&name, "-index.txt") || absl::ConsumeSuffix(&name, "-000000.tar") ||
        absl::ConsumeSuffix(&name, "-000000.tar.zst") ||
        absl::ConsumeSuffix(&name, "-000000.tar.gz") || absl::ConsumeSuffix(&name, "-000000.tgz")) {
      splits.insert(std::string(name));
    }
  }
  return splits;
}

// A loader must not take for an image's fault what is the store's.
absl::Status OfStore(const absl::Status& status) {
  if (status.ok() || absl::IsUnavailable(status) || absl::IsCancelled(status)) return status;
  return absl::FailedPreconditionError(status.message());
}

bool Contains(const std::vector<int64_t>& parts, size_t part) {
  return std::find(parts.begin(), parts.end(), static_cast<int64_t>(part)) != parts.end();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> StreamedShards::Open(const std::string& address,
                                                                    absl::string_view split,
                                                                    const StreamOptions& options) {
  std::shared_ptr<StreamedShards> shards(
      new StreamedShards(std::string(absl::StripSuffix(address, "/")), options));
  const absl::Status connected = shards->Connect(split);
  if (absl::IsNotFound(connected)) return connected;  // perhaps under another name
  TUTTI_RETURN_IF_ERROR(OfStore(connected));
  shards->thread_ = std::thread([raw = shards.get()] { raw->Run(); });
  return shards;
}

StreamedShards::~StreamedShards() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_.notify_all();
  opened_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::string> StreamedShards::ReadSmall(const std::string& name) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path file, client_->Get(name));
  absl::StatusOr<std::string> text = base::ReadFile(file, kMostIndex);
  client_->Drop(name);
  return text;
}

absl::Status StreamedShards::Connect(absl::string_view split) {
  TUTTI_ASSIGN_OR_RETURN(client_, StreamClient::Open(address_, options_, ending_));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<StreamedFile> files, client_->List());
  const std::string name = ShardIndexName(split);
  const auto has = [&](const std::string& path) {
    return std::any_of(files.begin(), files.end(),
                       [&](const StreamedFile& file) { return file.path == path; });
  };
  if (!has(name)) {
    const std::set<std::string> splits = SplitsOf(files);
    if (!splits.contains(std::string(split))) {
      return absl::NotFoundError(
          splits.empty() ? absl::StrCat(address_, ": holds no shards (", split, "-000000.tar, …)")
                         : absl::StrCat(address_, ": no split \"", split, "\"; there is ",
                                        absl::StrJoin(splits, ", ")));
    }
    return absl::FailedPreconditionError(
        absl::StrCat(address_, ": has shards of split \"", split, "\" and no ", name,
                     ", which says how many images each has: make it with `tutti-data index "
                     "FOLDER` where the shards lie, and put it beside them"));
  }
  TUTTI_ASSIGN_OR_RETURN(const std::string text, ReadSmall(name));
  auto index = ParseShardIndex(text);
  if (!index.ok()) return base::Annotate(index.status(), absl::StrCat(address_, "/", name));
  index_ = *std::move(index);
  TUTTI_RETURN_IF_ERROR(CheckShards(files));
  TUTTI_ASSIGN_OR_RETURN(const fs::path classes, client_->Get("classes.txt"));
  TUTTI_ASSIGN_OR_RETURN(classes_, ReadClasses(classes));
  client_->Drop("classes.txt");
  int64_t first = 0;
  for (const ShardIndex::Shard& shard : index_.shards) {
    parts_.push_back(shard.samples);
    first_.push_back(first);
    first += shard.samples;
  }
  labels_.resize(static_cast<size_t>(first));
  state_.resize(parts_.size());
  return absl::OkStatus();
}

// Before hours have gone by.
absl::Status StreamedShards::CheckShards(const std::vector<StreamedFile>& files) const {
  std::map<absl::string_view, int64_t> sizes;
  for (const StreamedFile& file : files) sizes[file.path] = file.bytes;
  for (const ShardIndex::Shard& shard : index_.shards) {
    const auto found = sizes.find(shard.name);
    if (found == sizes.end()) {
      return absl::FailedPreconditionError(
          absl::StrCat(address_, "/", shard.name,
                       ": is not there, and the index names it: put it there, or "
                       "make the index anew with `tutti-data index FOLDER`"));
    }
    if (found->second != shard.bytes) {
      return absl::FailedPreconditionError(absl::StrCat(
          address_, "/", shard.name, ": has ", found->second, " bytes, and the index says ",
          shard.bytes, ": make the index anew with `tutti-data index FOLDER`"));
    }
  }
  return absl::OkStatus();
}

size_t StreamedShards::PartOf(int64_t index) const {
  return static_cast<size_t>(std::upper_bound(first_.begin(), first_.end(), index) -
                             first_.begin()) -
         1;
}

absl::StatusOr<StreamedShards::Shard> StreamedShards::Await(size_t part) const {
  std::unique_lock lock(mutex_);
  Part& state = state_[part];
  if (state.shard != nullptr) return state.shard;
  state.failure.reset();  // it is tried anew
  wishes_.push_back(part);
  work_.notify_one();
  ++state.waiting;
  opened_.wait(lock, [&] { return ending_ || state.shard != nullptr || state.failure; });
  --state.waiting;
  if (state.shard != nullptr) return state.shard;
  return state.failure ? *state.failure : absl::CancelledError("the data set is closed");
}

absl::Status StreamedShards::AwaitLabel(int64_t index) const {
  const size_t part = PartOf(index);
  {
    const std::lock_guard lock(mutex_);
    if (state_[part].has_labels) return absl::OkStatus();  // also when the shard has gone again
  }
  return Await(part).status();
}

absl::StatusOr<absl::string_view> StreamedShards::Encoded(int64_t index,
                                                          std::string& scratch) const {
  const size_t part = PartOf(index);
  TUTTI_ASSIGN_OR_RETURN(const Shard shard, Await(part));
  std::string unused;
  TUTTI_ASSIGN_OR_RETURN(const absl::string_view bytes,
                         shard->Encoded(index - first_[part], unused));
  scratch.assign(bytes.data(), bytes.size());
  return scratch;
}

absl::StatusOr<absl::string_view> StreamedShards::Annotation(int64_t index,
                                                             std::string& scratch) const {
  const size_t part = PartOf(index);
  TUTTI_ASSIGN_OR_RETURN(const Shard shard, Await(part));
  std::string unused;
  TUTTI_ASSIGN_OR_RETURN(const absl::string_view bytes,
                         shard->Annotation(index - first_[part], unused));
  scratch.assign(bytes.data(), bytes.size());
  return scratch;
}

std::string StreamedShards::Describe(int64_t index) const {
  const size_t part = PartOf(index);
  {
    const std::lock_guard lock(mutex_);
    if (state_[part].shard) return state_[part].shard->Describe(index - first_[part]);
  }
  return absl::StrCat(index_.shards[part].name, ": image ", index - first_[part]);
}

void StreamedShards::WillNeed(int64_t index) const {
  const size_t part = PartOf(index);
  const std::lock_guard lock(mutex_);
  if (state_[part].shard) state_[part].shard->WillNeed(index - first_[part]);
}

void StreamedShards::WillVisit(std::span<const int64_t> now, std::span<const int64_t> next) const {
  const std::lock_guard lock(mutex_);
  if (std::equal(now.begin(), now.end(), now_.begin(), now_.end())) return;
  before_ = std::exchange(now_, {now.begin(), now.end()});
  next_.assign(next.begin(),
               next.begin() + static_cast<ptrdiff_t>(std::min(next.size(), kMostAhead)));
  has_new_plan_ = true;
  work_.notify_one();
}

// Open shards that the plan does not have: not yet those of the plan before, of which threads may
// still read, nor one that somebody waits for: the plan goes on while a shard is long in coming.
std::vector<size_t> StreamedShards::Expired() const {
  std::vector<size_t> expired;
  for (size_t part = 0; part < state_.size(); ++part) {
    const Part& state = state_[part];
    if (state.shard == nullptr || state.waiting > 0) continue;
    if (Contains(now_, part) || Contains(before_, part)) continue;
    const auto end = next_.begin() + static_cast<ptrdiff_t>(std::min(next_.size(), kOpenedAhead));
    if (std::find(next_.begin(), end, static_cast<int64_t>(part)) == end) expired.push_back(part);
  }
  return expired;
}

// What is to come, up to a quarter of the disk that there is, so that others read ahead too.
std::vector<std::string> StreamedShards::Ahead() const {
  std::vector<std::string> names;
  for (const int64_t part : now_) {
    const auto at = static_cast<size_t>(part);
    if (state_[at].shard == nullptr) names.push_back(index_.shards[at].name);
  }
  int64_t bytes = 0;
  for (const int64_t part : next_) {
    const ShardIndex::Shard& shard = index_.shards[static_cast<size_t>(part)];
    bytes += shard.bytes;
    if (bytes > client_->most_bytes() / 4) break;
    names.push_back(shard.name);
  }
  return names;
}

void StreamedShards::FollowPlan(std::unique_lock<std::mutex>& lock) {
  has_new_plan_ = false;
  const std::vector<size_t> expired = Expired();
  for (const size_t part : expired) state_[part].shard.reset();
  std::vector<std::string> ahead = Ahead();
  lock.unlock();
  for (const size_t part : expired) client_->Drop(index_.shards[part].name);
  client_->SetAhead(std::move(ahead));
  lock.lock();
}

std::optional<size_t> StreamedShards::Next() {
  while (!wishes_.empty()) {
    const size_t part = wishes_.front();
    wishes_.pop_front();
    if (state_[part].shard == nullptr && !state_[part].failure) return part;
  }
  const auto is_to_open = [&](int64_t part) {
    const Part& state = state_[static_cast<size_t>(part)];
    return state.shard == nullptr && !state.failure;
  };
  for (const int64_t part : now_) {
    if (is_to_open(part)) return static_cast<size_t>(part);
  }
  for (size_t i = 0; i < std::min(next_.size(), kOpenedAhead); ++i) {
    if (is_to_open(next_[i])) return static_cast<size_t>(next_[i]);
  }
  return std::nullopt;
}

void StreamedShards::Run() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    if (has_new_plan_) {
      FollowPlan(lock);
    } else if (const std::optional<size_t> part = Next()) {
      OpenPart(*part, lock);
    } else {
      work_.wait(lock);
    }
  }
}

void StreamedShards::OpenPart(size_t part, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  absl::StatusOr<Shard> shard = Fetch(part);
  lock.lock();
  if (shard.ok()) {
    if (!state_[part].has_labels && (*shard)->size() > 0) {
      for (const std::string& remark : (*shard)->Remarks()) {
        base::Warn(absl::StrCat(address_, "/", index_.shards[part].name, ": ", remark));
      }
    }
    TakeLabels(part, **shard);
    state_[part].shard = *std::move(shard);
  } else {
    state_[part].failure = OfStore(shard.status());
  }
  opened_.notify_all();
}

// The cache may lose a file only where its program was killed.
absl::StatusOr<StreamedShards::Shard> StreamedShards::Fetch(size_t part) {
  const ShardIndex::Shard& entry = index_.shards[part];
  for (int tries = 1;; ++tries) {
    TUTTI_ASSIGN_OR_RETURN(const fs::path file, client_->Get(entry.name));
    absl::StatusOr<Shard> shard = OpenTarShard(file, classes_);
    if (absl::IsNotFound(shard.status()) && tries < kTriesToOpen) continue;
    TUTTI_RETURN_IF_ERROR(shard.status());
    if ((*shard)->size() == entry.samples &&
        ((*shard)->annotations() == index_.annotations || entry.samples == 0) &&
        (*shard)->most_boxes() <= index_.most_boxes) {
      return shard;
    }
    return absl::FailedPreconditionError(absl::StrCat(
        address_, "/", entry.name, ": has ", (*shard)->size(), " images with ",
        NameOf((*shard)->annotations()), ", and the index says ", entry.samples, " with ",
        NameOf(index_.annotations), ": make the index anew with `tutti-data index FOLDER`"));
  }
}

void StreamedShards::TakeLabels(size_t part, const Dataset& shard) {
  if (std::exchange(state_[part].has_labels, true)) return;
  for (int64_t i = 0; i < shard.size(); ++i) {
    labels_[static_cast<size_t>(first_[part] + i)] = shard.label(i);
  }
}

absl::StatusOr<std::shared_ptr<const Dataset>> OpenStreamedShards(const std::string& address,
                                                                  absl::string_view split,
                                                                  const StreamOptions& options) {
  return StreamedShards::Open(address, split, options);
}

}  // namespace tutti::data
