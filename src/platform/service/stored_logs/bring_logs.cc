#include "platform/service/stored_logs/bring_logs.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "platform/service/stored_logs/log_place.h"
#include "platform/storage/input_request.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/storage_program.h"
#include "platform/storage/transfer/object_names.h"
#include "spec/views/view_writer.h"

namespace tutti::service {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using storage::StorageRequest;
using storage::StoredObject;
using Objects = std::map<std::string, StoredObject>;  // by path

constexpr absl::Duration kPatienceWithLogFolder = absl::Seconds(30);
// A put may take as long as its bytes need.
constexpr absl::Duration kLongestSilenceOfAPut = absl::Hours(1);
constexpr size_t kFilesAtATime = 256;
constexpr int kLogConnections = 4;
constexpr size_t kLongestShownName = 200;

absl::Status OfLogsFolder(absl::Status status) {
  return storage::WithSource(std::move(status), storage::FaultSource::kDisk);
}

absl::StatusOr<json> ManifestOf(const fs::path& folder, const StoredObject& object) {
  const auto hash = base::Sha256OfFile(folder / object.path);
  if (!hash.ok()) return OfLogsFolder(hash.status());
  json one = {{"path", object.path}, {"bytes", object.bytes}, {"sha256", base::Hex(*hash)}};
  if (!object.etag.empty()) one["etag"] = object.etag;
  return one;
}

// Lists what a job has in its folder of logs.
struct LogFiles {
  std::vector<std::string> put;       // by their paths in the job's folder
  std::vector<std::string> left_out;  // those that no object can be called like
  bool has_folder = true;             // the job has
};

bool CanBeAnObject(const std::string& path) {
  return base::BoundedUtf8(path) == path && storage::CheckNames({StoredObject{.path = path}}).ok();
}

absl::StatusOr<LogFiles> ListLogs(const JobFiles& files, const std::string& job) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<JobFile> all, files.List(job));
  LogFiles logs;
  for (const JobFile& file : all) {
    if (!absl::StartsWith(file.path, "logs/")) continue;
    (CanBeAnObject(file.path) ? logs.put : logs.left_out).push_back(file.path);
  }
  const fs::path folder = files.FolderOf(job) / kLogsFolder;
  std::error_code error;
  if (logs.put.empty()) static_cast<void>(fs::exists(folder, error));
  if (!error && logs.put.empty()) logs.has_folder = fs::exists(files.FolderOf(job), error);
  if (!error) return logs;
  return absl::UnavailableError(absl::StrCat(folder.native(), ": ", error.message()));
}

// In the queue of the job's folder, which may hang.
absl::StatusOr<LogFiles> LogsOf(SharedState& state, const std::string& job) {
  const auto found = std::make_shared<absl::StatusOr<LogFiles>>();
  const bool answers = state.folder_work.DoWithin(
      job, [found, files = state.files, job] { *found = ListLogs(files, job); },
      base::Deadline::After(kPatienceWithLogFolder));
  if (!answers) {
    return OfLogsFolder(
        absl::UnavailableError("its folder does not answer: is it on a server that is away?"));
  }
  if (!found->ok()) return OfLogsFolder(found->status());
  return *std::move(*found);
}

std::string LeftOutLine(const LogFiles& logs) {
  if (logs.left_out.empty()) return "";
  return absl::StrCat(logs.left_out.size(), " left out, whose names a store cannot have: ",
                      base::BoundedUtf8(logs.left_out.front(), kLongestShownName),
                      logs.left_out.size() > 1 ? ", …" : "");
}

absl::StatusOr<StorageRequest> PutRequestOf(const spec::Output& output, const std::string& job,
                                            const Secrets& secrets) {
  std::set<std::string> names;
  if (!output.place->secret.empty()) names.insert(output.place->secret);
  const auto values = secrets.ValuesOf(names);
  // Not NotFound, which says that the job is not there.
  if (!values.ok()) return absl::FailedPreconditionError(values.status().message());
  auto request = storage::RequestFor(storage::Operation::kPut, output, job, *values);
  if (request.ok()) request->connections = kLogConnections;
  return request;
}

absl::StatusOr<storage::StorageResult> Put(const SharedState& state,
                                           const StorageRequest& request) {
  TUTTI_ASSIGN_OR_RETURN(const fs::path program, storage::StorageProgram());
  return storage::RunStorageWatched(program, request,
                                    base::Deadline::After(absl::InfiniteDuration()), state.ending,
                                    {.longest_silence = kLongestSilenceOfAPut});
}

absl::Status PutFiles(const spec::Output& output, const std::vector<std::string>& files,
                      SharedState& state, StorageRequest& request, Objects& there) {
  for (size_t begin = 0; begin < files.size(); begin += kFilesAtATime) {
    const size_t end = std::min(begin + kFilesAtATime, files.size());
    request.files.assign(files.begin() + static_cast<std::ptrdiff_t>(begin),
                         files.begin() + static_cast<std::ptrdiff_t>(end));
    const auto done = Put(state, request);
    if (!done.ok()) {
      const absl::Status& why = done.status();
      absl::Status fault(why.code(), storage::OutputFault(output, why));
      return storage::AboutObject(storage::WithSource(std::move(fault), storage::SourceOf(why)),
                                  storage::ObjectOf(why));
    }
    for (const StoredObject& object : done->objects) there[object.path] = object;
  }
  return absl::OkStatus();
}

// The service's log of the job: what it was warned of, then its states, the oldest first.
absl::StatusOr<std::string> ServiceLog(store::Store& store, const store::Job& job) {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::Event> events, store.EventsOf(job.id));
  std::string text;
  const auto add = [&](absl::Time time, absl::string_view state, absl::string_view what) {
    absl::StrAppend(&text, spec::Rfc3339(time), " ", state, what.empty() ? "" : ": ",
                    absl::StrReplaceAll(what, {{"\n", " "}}), "\n");
  };
  for (const std::string& warning : job.warnings) add(job.created, "warning", warning);
  for (const store::Event& event : events) add(event.time, store::Name(event.state), event.reason);
  return text;
}

// Puts what the service itself writes for a job: its log of it and, last, the list of all that is
// there.
absl::Status PutOwnFiles(const store::Job& job, const spec::Output& output, Objects there,
                         SharedState& state, StorageRequest& request) {
  json files = json::array();
  const auto list = [&](const Objects& objects) -> absl::Status {
    for (const auto& [path, object] : objects) {
      TUTTI_ASSIGN_OR_RETURN(json one, ManifestOf(request.folder, object));
      files.push_back(std::move(one));
    }
    return absl::OkStatus();
  };
  TUTTI_RETURN_IF_ERROR(list(there));
  request.folder = state.options.directory / "incoming" / absl::StrCat("logs-", job.id);
  absl::Cleanup remove = [folder = request.folder] {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  };
  TUTTI_RETURN_IF_ERROR(OfLogsFolder(base::MakeDirectories(request.folder)));
  TUTTI_ASSIGN_OR_RETURN(const std::string log, ServiceLog(*state.store, job));
  TUTTI_RETURN_IF_ERROR(OfLogsFolder(base::ReplaceFile(request.folder / kServiceLog, log)));
  Objects own;
  TUTTI_RETURN_IF_ERROR(PutFiles(output, {kServiceLog}, state, request, own));
  TUTTI_RETURN_IF_ERROR(list(own));
  const json document = {
      {"job", job.id}, {"place", storage::Described(request.place)}, {"files", std::move(files)}};
  TUTTI_RETURN_IF_ERROR(OfLogsFolder(base::ReplaceFile(
      request.folder / kLogsManifest,
      absl::StrCat(document.dump(1, ' ', false, json::error_handler_t::replace), "\n"))));
  return PutFiles(output, {kLogsManifest}, state, request, own);
}

}  // namespace

absl::StatusOr<std::string> BringLogs(SharedState& state, const Secrets& secrets,
                                      const std::string& job, int64_t sequence) {
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state.store->GetJob(job));
  if (record.job.sequence != sequence || !record.job.spec.logs_place) {
    return absl::NotFoundError(absl::StrCat("job ", job, " is another one by now"));
  }
  const spec::Output output = LogsOutput(*record.job.spec.logs_place, job);
  TUTTI_ASSIGN_OR_RETURN(StorageRequest request, PutRequestOf(output, job, secrets));
  TUTTI_ASSIGN_OR_RETURN(const LogFiles files, LogsOf(state, job));
  if (files.put.empty() && files.left_out.empty()) {
    TUTTI_ASSIGN_OR_RETURN(const auto removed, state.store->RemovedOf(job));
    const bool gone = std::any_of(removed.begin(), removed.end(),
                                  [](const auto& part) { return part.kind == kLogsFolder; });
    if (gone) return absl::InvalidArgumentError("they were removed by the site's retention first");
    if (record.started && !files.has_folder) {
      return OfLogsFolder(absl::UnavailableError(
          absl::StrCat(state.files.FolderOf(job).native(), " is not there: is its disk mounted?")));
    }
  }
  request.folder = state.files.FolderOf(job);
  Objects there;
  TUTTI_RETURN_IF_ERROR(PutFiles(output, files.put, state, request, there));
  TUTTI_RETURN_IF_ERROR(PutOwnFiles(record.job, output, std::move(there), state, request));
  return files.put.empty() && files.left_out.empty() ? "the job has written none"
                                                     : LeftOutLine(files);
}

}  // namespace tutti::service
