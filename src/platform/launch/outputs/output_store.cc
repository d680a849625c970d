#include "platform/launch/outputs/output_store.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "base/unique_fd.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/node/node_folders.h"
#include "platform/launch/outputs/manifest_place.h"
#include "platform/storage/input_request.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using storage::FaultSource;
using storage::Operation;
using storage::StorageRequest;
using storage::StoredObject;

constexpr absl::Duration kSettled = absl::Seconds(10);
constexpr absl::Duration kSettledAtMost = absl::Minutes(10);
constexpr size_t kMostFilesOfBatch = 256;
constexpr int64_t kMostBytesOfBatch = 256 << 20;  // but one file, however large
constexpr size_t kHashBlock = 1 << 20;
constexpr int kConnections = 8;  // each has a few blocks of 8 MiB in memory
constexpr size_t kMostLeftOut = 1000;
constexpr size_t kMostShown = 3;
constexpr size_t kLongestShown = 200;
// Between two questions for credentials that the store has refused.
constexpr absl::Duration kFirstSecretsPause = absl::Seconds(5);
constexpr absl::Duration kLongestSecretsPause = absl::Minutes(5);

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const size_t length = base::Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Why no object can be called so; "" if one can.
std::string WhyNoObject(const std::string& path) {
  if (!IsUtf8(path)) return "its name is not UTF-8";
  return std::string(storage::CheckNames({StoredObject{.path = path}}).message());
}

std::string TimeText(double seconds) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::UnixEpoch() + absl::Seconds(seconds),
                          absl::UTCTimeZone());
}

absl::Status OfDisk(absl::Status status) {
  return storage::WithSource(std::move(status), FaultSource::kDisk);
}

absl::Status CheckGoesOn(const PutLimits& limits) {
  if (limits.cancelled) return absl::CancelledError("told to end");
  if (limits.deadline.Expired()) return absl::DeadlineExceededError("it has taken too long");
  return absl::OkStatus();
}

// Aborted once it has read more than `bytes`: a file that grows faster than it is read has no end.
absl::StatusOr<std::string> HashOf(const fs::path& path, int64_t bytes, const PutLimits& limits) {
  TUTTI_ASSIGN_OR_RETURN(const base::UniqueFd file, base::Open(path, O_RDONLY));
  base::Sha256 hash;
  std::vector<char> block(kHashBlock);
  while (true) {
    TUTTI_RETURN_IF_ERROR(CheckGoesOn(limits));
    const ssize_t n = ::read(file.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::ErrnoStatus(absl::StrCat("read ", path.native()));
    if (n == 0) return base::Hex(hash.Finish());
    if ((bytes -= n) < 0) return absl::AbortedError("the file has changed while it was read");
    hash.Update({block.data(), static_cast<size_t>(n)});
  }
}

// 10 s, twice as long each time, 10 minutes at most.
absl::Duration Doubled(int times) {
  absl::Duration settled = kSettled;
  for (int i = times; i > 0 && settled < kSettledAtMost; --i) settled *= 2;
  return std::min(settled, kSettledAtMost);
}

}  // namespace

absl::StatusOr<OutputStore> OutputStore::Open(const spec::LaunchPlan& plan, const std::string& name,
                                              StoreParts parts) {
  const fs::path file = NodeFolders(plan.directory).stored() / absl::StrCat(name, ".jsonl");
  TUTTI_ASSIGN_OR_RETURN(StoredFiles stored, StoredFiles::Open(file));
  return OutputStore(plan, name, std::move(parts), std::move(stored));
}

OutputStore::OutputStore(const spec::LaunchPlan& plan, const std::string& name, StoreParts parts,
                         StoredFiles stored)
    : plan_(plan),
      name_(name),
      output_(plan.outputs.at(name)),
      parts_(std::move(parts)),
      stored_(std::move(stored)),
      secrets_pauses_(kFirstSecretsPause, kLongestSecretsPause) {}

fs::path OutputStore::folder() const { return NodeFolders(plan_.directory).outputs() / name_; }

std::string OutputStore::file() const { return spec::WithOwnName(output_.file, plan_.job_id); }

std::string OutputStore::Described() const {
  return storage::Described(spec::PlaceOfJob(*output_.place, plan_.job_id));
}

// As the job's results are listed. What is gone by now is passed over; what the disk does not give
// is an error, for it is not known what is there.
absl::StatusOr<std::vector<OutputStore::Found>> OutputStore::Files() {
  const Results results = FilesOfOutput(plan_, name_);
  if (!results.failure.ok()) return OfDisk(results.failure);
  if (!results.unread.ok()) return OfDisk(results.unread);
  if (results.files.size() > kMostStoredFiles) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has more than ", kMostStoredFiles, " files: write archives (tar)"));
  }
  const std::string prefix = absl::StrCat("outputs/", name_, "/");
  std::vector<Found> files;
  left_out_.clear();
  left_out_more_ = 0;
  const auto leave_out = [&](std::string line) {
    left_out_.size() < kMostLeftOut ? left_out_.push_back(std::move(line))
                                    : static_cast<void>(++left_out_more_);
  };
  told_left_out_ = results.left_out.size();
  for (const std::string& line : results.left_out) {
    leave_out(std::string(absl::StripPrefix(line, prefix)));
  }
  for (const Result& result : results.files) {
    std::string path = result.path.substr(prefix.size());
    if (output_.type == "uri_file" && path != file()) {
      leave_out(absl::StrCat(base::BoundedUtf8(path, kLongestShown), " (the output is one file, ",
                             file(), ")"));
      continue;
    }
    const auto state = StateOf(result.file);
    if (absl::IsNotFound(state.status())) continue;
    if (!state.ok()) return OfDisk(state.status());
    std::string why = WhyNoObject(path);
    const bool is_young = absl::FromUnixNanos(state->changed) >= left_out_since_ &&
                          !IsEarlier(path, *state);  // it came then
    if (why.empty() && is_young) why = "it was being written when the job's processes were killed";
    if (why.empty()) {
      files.push_back({std::move(path), *state});
    } else {
      leave_out(absl::StrCat(base::BoundedUtf8(path, kLongestShown), " (", why, ")"));
    }
  }
  std::sort(files.begin(), files.end(),
            [](const Found& a, const Found& b) { return a.path < b.path; });
  return files;
}

// Returns whether it lies there as it came from the store.
bool OutputStore::IsEarlier(const std::string& path, const FileState& state) const {
  return stored_.Has(path, state) && stored_.Times(path) == 0;
}

void OutputStore::TrustEarlier() {
  for (const auto& [path, stored] : stored_.all()) known_.insert(path);
}

// What another launcher has put is known by its state alone, if that is certain.
bool OutputStore::IsStored(const Found& file) const {
  return stored_.Has(file.path, file.state) &&
         (known_.contains(file.path) || IsCertain(*stored_.Find(file.path)));
}

absl::StatusOr<std::vector<OutputStore::Found>> OutputStore::Unstored() {
  TUTTI_ASSIGN_OR_RETURN(std::vector<Found> files, Files());
  ForgetOthers(files);
  std::erase_if(files, [&](const Found& file) { return IsStored(file); });
  return files;
}

absl::StatusOr<std::vector<OutputStore::Found>> OutputStore::UnstoredOrDoubted() {
  TUTTI_ASSIGN_OR_RETURN(std::vector<Found> files, Files());
  ForgetOthers(files);
  std::erase_if(files,
                [&](const Found& file) { return IsStored(file) && !doubted_.contains(file.path); });
  return files;
}

void OutputStore::Doubt() {
  for (const auto& [path, stored] : stored_.all()) doubted_.insert(path);
}

// Forgets files that are there no longer, so that they take no memory.
void OutputStore::ForgetOthers(const std::vector<Found>& files) {
  std::set<absl::string_view> there;
  for (const Found& file : files) there.insert(file.path);
  std::erase_if(seen_, [&](const auto& entry) { return !there.contains(entry.first); });
  std::erase_if(troubles_, [&](const auto& entry) { return !there.contains(entry.first); });
}

absl::StatusOr<bool> OutputStore::HasUnstored() {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<Found> files, UnstoredOrDoubted());
  return !files.empty();
}

std::string OutputStore::Missing() {
  const auto files = Unstored();
  if (!files.ok()) return std::string(files.status().message());
  if (files->empty()) return "";
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(files->size(), kMostShown); ++i) {
    names.push_back(base::BoundedUtf8((*files)[i].path, kLongestShown));
  }
  if (files->size() > kMostShown) names.push_back("…");
  return absl::StrCat(files->size(), files->size() == 1 ? " file (" : " files (",
                      absl::StrJoin(names, ", "), ")");
}

std::string OutputStore::LeftOut() const {
  const size_t count = left_out_.size() + left_out_more_ - told_left_out_;
  if (count == 0) return "";
  const size_t named = std::min(told_left_out_, left_out_.size());
  const size_t shown = std::min(left_out_.size() - named, kMostShown);
  const auto begin = left_out_.begin() + static_cast<std::ptrdiff_t>(named);
  const std::vector<std::string> first(begin, begin + static_cast<std::ptrdiff_t>(shown));
  return absl::StrCat(count, count == 1 ? " file left out: " : " files left out: ",
                      absl::StrJoin(first, ", "), count > shown ? ", …" : "");
}

bool OutputStore::IsFinished(const Found& file) {
  const absl::Duration now = parts_.steady();
  const auto [seen, is_new] = seen_.try_emplace(file.path, Seen{file.state, now});
  if (!is_new && !(seen->second.state == file.state)) seen->second = {file.state, now};
  const auto trouble = troubles_.find(file.path);
  const bool rests = trouble != troubles_.end() &&
                     now - trouble->second.since < Doubled(trouble->second.times - 1);
  return !rests && now - seen->second.since >= Doubled(stored_.Times(file.path));
}

absl::Status OutputStore::PutFinished(const PutLimits& limits) {
  TUTTI_ASSIGN_OR_RETURN(std::vector<Found> files, Unstored());
  std::erase_if(files, [&](const Found& file) { return !IsFinished(file); });
  return Put(files, limits);
}

// The first error of a file of itself is the result, once all have had their turn.
absl::Status OutputStore::Put(const std::vector<Found>& files, const PutLimits& limits) {
  absl::Status first;
  std::vector<Found> batch;
  int64_t bytes = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    batch.push_back(files[i]);
    bytes += files[i].state.bytes;
    const bool is_full = batch.size() == kMostFilesOfBatch || bytes >= kMostBytesOfBatch;
    if (!is_full && i + 1 < files.size()) continue;
    const absl::Status put = PutBatch(std::exchange(batch, {}), limits);
    bytes = 0;
    storage::TakeFailure(put, first);
    if (!put.ok() && storage::ObjectOf(put).empty()) return put;
    if (!put.ok() && storage::ConcernsAllObjects(put)) return put;
  }
  return first;
}

// With the credentials that the service has: those of a place may be given anew while a job runs.
absl::StatusOr<StorageRequest> OutputStore::Request() {
  // Its folder of that name is another one, if it has one.
  if (plan_.is_courier && output_.place->kind == spec::StoreKind::kLocal) {
    return absl::FailedPreconditionError(
        "it goes to a folder of its node, whose launcher has ended: copy it there from the job's "
        "results");
  }
  if (!secrets_ && output_.place->secret.empty()) secrets_.emplace();
  if (!secrets_) {
    TUTTI_ASSIGN_OR_RETURN(secrets_, parts_.secrets());
    secrets_kept_until_ = parts_.steady() + secrets_pauses_.Next();
  }
  TUTTI_ASSIGN_OR_RETURN(StorageRequest request,
                         storage::RequestFor(Operation::kPut, output_, plan_.job_id, *secrets_));
  request.connections = kConnections;
  return request;
}

// The service is not asked each time, as a refusal may last for hours.
void OutputStore::AskAnewIfRefused(const absl::Status& put) {
  const bool is_refused =
      absl::IsPermissionDenied(put) && storage::SourceOf(put) != FaultSource::kDisk;
  if (put.ok()) secrets_pauses_.Reset();
  if (is_refused && parts_.steady() >= secrets_kept_until_) secrets_.reset();
}

absl::Status OutputStore::Check() {
  return base::Annotate(Request().status(), absl::StrCat("output \"", name_, "\""));
}

// Adds to the batch what is to be put. What has the content that the store has already is not: it
// was renamed or touched, or the state alone did not tell.
absl::Status OutputStore::Hash(const std::vector<Found>& files, const PutLimits& limits,
                               Batch& batch) {
  absl::Status first;
  for (const Found& file : files) {
    const int64_t began = absl::ToUnixNanos(parts_.now());
    const auto hash = HashOf(folder() / file.path, file.state.bytes, limits);
    if (absl::IsNotFound(hash.status())) continue;  // it is gone, and with the next look not found
    TUTTI_RETURN_IF_ERROR(CheckGoesOn(limits));
    if (!hash.ok()) {
      first.Update(storage::AboutObject(OfDisk(hash.status()), file.path));
      continue;
    }
    const StoredFile* const stored = stored_.Find(file.path);
    if (stored != nullptr && stored->sha256 == *hash && stored->state.bytes == file.state.bytes) {
      known_.insert(file.path);
      doubted_.erase(file.path);
      const absl::Status kept = stored_.Renew(file.path, file.state, began);
      if (!kept.ok()) spdlog::warn("output \"{}\": {}", name_, kept.ToString());
      continue;
    }
    batch.request.files.push_back(file.path);
    batch.files[file.path] = {.state = file.state, .sha256 = *hash, .hashed = began};
  }
  return first;
}

// Notes what the store has, and of what it does not have when to try again.
void OutputStore::TakePut(const Batch& batch, const std::map<std::string, StoredObject>& there,
                          const absl::Status& put) {
  const bool is_of_files =
      !put.ok() && !storage::ObjectOf(put).empty() && !storage::ConcernsAllObjects(put);
  for (auto [path, stored] : batch.files) {
    const auto object = there.find(path);
    const auto state = StateOf(folder() / path);
    const bool is_as_it_was = state.ok() && *state == stored.state;
    if (object == there.end() || !is_as_it_was) {
      // It is refused, or was written to meanwhile.
      if (is_of_files || object != there.end()) {
        Trouble& trouble = troubles_[path];
        ++trouble.times;
        trouble.since = parts_.steady();
      }
      continue;
    }
    stored.etag = object->second.etag;
    stored.stored = absl::ToDoubleSeconds(parts_.now() - absl::UnixEpoch());
    const absl::Status kept = stored_.Add(path, stored);
    if (!kept.ok()) spdlog::warn("output \"{}\": {}", name_, kept.ToString());
    known_.insert(path);
    doubted_.erase(path);
    troubles_.erase(path);
  }
}

absl::Status OutputStore::PutBatch(const std::vector<Found>& files, const PutLimits& limits) {
  Batch batch;
  TUTTI_ASSIGN_OR_RETURN(batch.request, Request());
  batch.request.folder = folder();
  absl::Status hashed = Hash(files, limits, batch);
  TUTTI_RETURN_IF_ERROR(CheckGoesOn(limits));
  if (batch.request.files.empty()) return hashed;
  std::map<std::string, StoredObject> there;
  absl::Status put = parts_.put(batch.request, limits,
                                [&](const StoredObject& object) { there[object.path] = object; });
  TakePut(batch, there, put);
  AskAnewIfRefused(put);
  put.Update(hashed);
  return put;
}

absl::Status OutputStore::PutAll(const PutLimits& limits) {
  absl::Status put;
  const auto files = UnstoredOrDoubted();
  put = files.ok() ? Put(*files, limits) : files.status();
  if (put.ok()) {
    const auto is_left = HasUnstored();
    put = is_left.status();
    if (is_left.ok() && *is_left) {
      put = OfDisk(absl::AbortedError("files have changed while they were put"));
    }
  }
  if (put.ok()) put = PutManifest(limits);
  if (put.ok() || absl::IsCancelled(put)) return put;
  const std::string object = storage::ObjectOf(put);
  absl::Status fault = storage::WithSource(
      absl::Status(put.code(),
                   absl::StrCat("output \"", name_, "\": ", storage::OutputFault(output_, put))),
      storage::SourceOf(put));
  return object.empty() ? fault : storage::AboutObject(std::move(fault), object);
}

// Beside the output, so that who reads the folder finds nothing in it that the job has not written:
// "models/run" has "models/run.stored.node-0.json".
absl::Status OutputStore::PutManifest(const PutLimits& limits) {
  const spec::DataPlace place = spec::PlaceOfJob(*output_.place, plan_.job_id);
  const std::optional<ManifestPlace> beside = ManifestBeside(place, name_, plan_.node_index);
  if (!beside) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(StorageRequest request, Request());
  request.place.path = beside->folder;
  request.folder = NodeFolders(plan_.directory).stored() / name_;
  request.files = {beside->file};
  TUTTI_RETURN_IF_ERROR(WriteManifest(request.folder / beside->file,
                                      /*is_whole=*/left_out_since_ == absl::InfiniteFuture()));
  const absl::Status put = parts_.put(request, limits, {});
  if (!absl::IsPermissionDenied(put)) return put;
  // Who may write to the output's folder alone has the files; the manifest is with the job.
  spdlog::warn("output \"{}\": no manifest beside it: {}", name_, put.ToString());
  return absl::OkStatus();
}

absl::Status OutputStore::WriteManifest(const fs::path& file, bool is_whole) const {
  json files = json::array();
  for (const auto& [path, stored] : stored_.all()) {
    if (stored.times == 0) continue;  // another job's, or of another node
    json one = {{"path", path},
                {"bytes", stored.state.bytes},
                {"sha256", stored.sha256},
                {"stored", TimeText(stored.stored)}};
    if (!stored.etag.empty()) one["etag"] = stored.etag;
    std::error_code error;
    if (!fs::exists(folder() / path, error) && !error) one["removed"] = true;  // by the job, since
    files.push_back(std::move(one));
  }
  json document = {{"job", plan_.job_id},      {"attempt", plan_.attempt},
                   {"output", name_},          {"node", plan_.node_index},
                   {"place", Described()},     {"whole", is_whole && left_out_.empty()},
                   {"files", std::move(files)}};
  if (!left_out_.empty()) document["left_out"] = left_out_;
  if (left_out_more_ > 0) document["left_out_more"] = left_out_more_;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  return base::ReplaceFile(
      file, absl::StrCat(document.dump(1, ' ', false, json::error_handler_t::replace), "\n"));
}

}  // namespace tutti::launch
