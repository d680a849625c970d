#include "platform/launch/outputs/output_store.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/node/node_folders.h"
#include "platform/storage/input_request.h"
#include "platform/storage/transfer/object_names.h"

namespace tutti::launch {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using storage::Operation;
using storage::StorageRequest;
using storage::StoredObject;

constexpr absl::Duration kSettled = absl::Seconds(10);
constexpr absl::Duration kSettledAtMost = absl::Minutes(10);
constexpr size_t kMostFilesOfBatch = 256;
constexpr int64_t kMostBytesOfBatch = 256 << 20;  // but one file, however large

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
      stored_(std::move(stored)) {}

fs::path OutputStore::folder() const { return NodeFolders(plan_.directory).outputs() / name_; }

std::string OutputStore::Described() const {
  return storage::Described(spec::PlaceOfJob(*output_.place, plan_.job_id));
}

// As the job's results are listed. What is gone by now is passed over.
std::vector<OutputStore::Found> OutputStore::Files() {
  const Results results = FilesOfOutput(plan_, name_);
  const size_t prefix = absl::StrCat("outputs/", name_, "/").size();
  std::vector<Found> files;
  left_out_ = results.left_out;
  for (const Result& result : results.files) {
    std::string path = result.path.substr(prefix);
    if (output_.type == "uri_file" && path != output_.file) continue;
    if (const std::string why = WhyNoObject(path); !why.empty()) {
      left_out_.push_back(absl::StrCat(base::BoundedUtf8(path, 200), " (", why, ")"));
      continue;
    }
    const auto state = StateOf(result.file);
    if (state.ok()) files.push_back({std::move(path), *state});
  }
  std::sort(files.begin(), files.end(),
            [](const Found& a, const Found& b) { return a.path < b.path; });
  return files;
}

std::vector<OutputStore::Found> OutputStore::Unstored() {
  std::vector<Found> files = Files();
  std::erase_if(files, [&](const Found& file) { return stored_.Has(file.path, file.state); });
  return files;
}

bool OutputStore::HasUnstored() { return !Unstored().empty(); }

bool OutputStore::IsFinished(const Found& file) {
  const absl::Duration now = parts_.steady();
  const auto [seen, is_new] = seen_.try_emplace(file.path, Seen{file.state, now});
  if (!is_new && !(seen->second.state == file.state)) seen->second = {file.state, now};
  absl::Duration settled = kSettled;
  for (int i = stored_.Times(file.path); i > 0 && settled < kSettledAtMost; --i) settled *= 2;
  return now - seen->second.since >= std::min(settled, kSettledAtMost);
}

absl::Status OutputStore::PutFinished(const std::atomic<bool>& cancelled) {
  std::vector<Found> files = Unstored();
  std::erase_if(files, [&](const Found& file) { return !IsFinished(file); });
  return Put(files, cancelled);
}

absl::Status OutputStore::Put(const std::vector<Found>& files, const std::atomic<bool>& cancelled) {
  std::vector<Found> batch;
  int64_t bytes = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    batch.push_back(files[i]);
    bytes += files[i].state.bytes;
    const bool is_full = batch.size() == kMostFilesOfBatch || bytes >= kMostBytesOfBatch;
    if (!is_full && i + 1 < files.size()) continue;
    TUTTI_RETURN_IF_ERROR(PutBatch(std::exchange(batch, {}), cancelled));
    bytes = 0;
  }
  return absl::OkStatus();
}

// With the credentials that the service has: those of a place may be given anew while a job runs.
absl::StatusOr<StorageRequest> OutputStore::Request() {
  if (!secrets_ && output_.place->secret.empty()) secrets_.emplace();
  if (!secrets_) {
    TUTTI_ASSIGN_OR_RETURN(secrets_, parts_.secrets());
  }
  return storage::RequestFor(Operation::kPut, output_, plan_.job_id, *secrets_);
}

absl::Status OutputStore::Check() {
  return base::Annotate(Request().status(), absl::StrCat("output \"", name_, "\""));
}

absl::Status OutputStore::PutBatch(std::vector<Found> batch, const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(StorageRequest request, Request());
  request.folder = folder();
  std::map<std::string, std::string> hashes;
  for (const Found& file : batch) {
    if (cancelled) return absl::CancelledError("told to end");
    const auto hash = base::Sha256OfFile(folder() / file.path);
    if (!hash.ok()) continue;  // it is gone, and with the next look not found
    hashes[file.path] = base::Hex(*hash);
    request.files.push_back(file.path);
  }
  if (request.files.empty()) return absl::OkStatus();
  std::map<std::string, StoredObject> there;
  const absl::Status put = parts_.put(
      request, cancelled, [&](const StoredObject& object) { there[object.path] = object; });
  for (const Found& file : batch) {
    const auto object = there.find(file.path);
    if (object == there.end()) continue;
    const auto state = StateOf(folder() / file.path);
    if (!state.ok() || !(*state == file.state)) continue;  // written to meanwhile: once more
    const absl::Status kept =
        stored_.Add(file.path, {.state = file.state,
                                .sha256 = hashes[file.path],
                                .etag = object->second.etag,
                                .stored = absl::ToDoubleSeconds(parts_.now() - absl::UnixEpoch())});
    if (!kept.ok()) spdlog::warn("output \"{}\": {}", name_, kept.ToString());
  }
  if (!put.ok()) secrets_.reset();
  return put;
}

absl::Status OutputStore::PutAll(const std::atomic<bool>& cancelled) {
  absl::Status put = Put(Unstored(), cancelled);
  if (put.ok() && HasUnstored()) {
    put = absl::AbortedError(
        "files have changed while they were put: a process of the job is left "
        "that writes to them");
  }
  if (put.ok()) put = PutManifest(cancelled);
  if (put.ok() || absl::IsCancelled(put)) return put;
  return absl::Status(put.code(),
                      absl::StrCat("output \"", name_, "\": ", storage::OutputFault(output_, put)));
}

// Beside the output, so that who reads the folder finds nothing in it that the job has not written:
// "models/run" has "models/run.stored.node-0.json".
absl::Status OutputStore::PutManifest(const std::atomic<bool>& cancelled) {
  TUTTI_ASSIGN_OR_RETURN(StorageRequest request, Request());
  const std::string whole = spec::PlaceOfJob(*output_.place, plan_.job_id).path;
  const std::string last = whole.substr(whole.rfind('/') + 1);
  const std::string file =
      absl::StrCat(last.empty() ? name_ : last, ".stored.node-", plan_.node_index, ".json");
  request.place.path = storage::FolderOf(whole);
  request.folder = NodeFolders(plan_.directory).stored() / name_;
  request.files = {file};
  TUTTI_RETURN_IF_ERROR(WriteManifest(request.folder / file, /*is_whole=*/true));
  const absl::Status put = parts_.put(request, cancelled, {});
  if (!absl::IsPermissionDenied(put)) return put;
  // Who may write to the output's folder alone has the files; the manifest is with the job.
  spdlog::warn("output \"{}\": no manifest beside it: {}", name_, put.ToString());
  return absl::OkStatus();
}

absl::Status OutputStore::WriteManifest(const fs::path& file, bool is_whole) const {
  json files = json::array();
  for (const auto& [path, stored] : stored_.all()) {
    json one = {{"path", path},
                {"bytes", stored.state.bytes},
                {"sha256", stored.sha256},
                {"stored", TimeText(stored.stored)}};
    if (!stored.etag.empty()) one["etag"] = stored.etag;
    std::error_code error;
    if (!fs::exists(folder() / path, error) && !error) one["removed"] = true;  // by the job, since
    files.push_back(std::move(one));
  }
  json document = {{"job", plan_.job_id},      {"attempt", plan_.attempt}, {"output", name_},
                   {"node", plan_.node_index}, {"place", Described()},     {"whole", is_whole},
                   {"files", std::move(files)}};
  if (!left_out_.empty()) document["left_out"] = left_out_;
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(file.parent_path()));
  return base::ReplaceFile(
      file, absl::StrCat(document.dump(1, ' ', false, json::error_handler_t::replace), "\n"));
}

}  // namespace tutti::launch
