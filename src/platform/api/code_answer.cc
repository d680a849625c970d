#include "platform/api/code_answer.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/api/file_answer.h"
#include "platform/api/json/status_json.h"
#include "platform/code/code_texts.h"
#include "spec/views/job_view.h"
#include "spec/views/view_writer.h"

namespace tutti::api {
namespace {

using http::ErrorResponse;
using http::JsonResponse;
using http::Response;
using service::Service;

absl::StatusOr<std::string> SnapshotOf(const store::Job& job, absl::string_view folder) {
  const std::map<std::string, std::string> snapshots = SnapshotsOf(job);
  if (folder.empty()) {
    if (!job.snapshot.empty()) return job.snapshot;
    if (!snapshots.empty()) return snapshots.begin()->second;
    return absl::NotFoundError(absl::StrCat("job ", job.id, " has no code"));
  }
  const auto found = snapshots.find(std::string(folder));
  if (found != snapshots.end()) return found->second;
  return absl::NotFoundError(absl::StrCat("job ", job.id, " has no code of the folder \"", folder,
                                          "\": its submission has its snapshots by folder"));
}

absl::StatusOr<spec::CodeView> ReadCode(Service& service, const std::string& job,
                                        const std::string& snapshot) {
  const auto archive = service.snapshots().Find(snapshot);
  if (absl::IsNotFound(archive.status())) {
    return absl::NotFoundError(
        absl::StrCat("the code of job ", job, " (", snapshot,
                     ") is not kept any more: the site's retention has removed it, or the service "
                     "was restored from a backup without it"));
  }
  if (!archive.ok()) return archive.status();
  auto texts = code::ReadCodeTexts(*archive);
  if (absl::IsInvalidArgument(texts.status())) {  // who asks did nothing wrong
    return absl::FailedPreconditionError(
        absl::StrCat("the code of job ", job, " cannot be read: ", texts.status().message()));
  }
  if (!texts.ok()) return texts.status();
  spec::CodeView view{.snapshot = snapshot, .left_out = texts->left_out};
  for (code::CodeTexts::File& file : texts->files) {
    view.files.push_back(
        {.path = std::move(file.path), .bytes = file.bytes, .text = std::move(file.text)});
  }
  return view;
}

}  // namespace

Response AnswerCode(Service* service, const Call& call) {
  const auto job = service->GetJob(call["job"]);
  if (!job.ok()) return ErrorResponse(job.status());
  const auto snapshot = SnapshotOf(job->record.job, call.request.Query("folder"));
  if (!snapshot.ok()) return ErrorResponse(snapshot.status());
  return AnswerByFileWork({service, Service::FileWork::kSnapshots, *snapshot}, call.connection,
                          [service, job = call["job"], snapshot = *snapshot] {
                            const auto code = ReadCode(*service, job, snapshot);
                            return code.ok() ? JsonResponse(spec::ViewWriter::Text(*code))
                                             : ErrorResponse(code.status());
                          });
}

}  // namespace tutti::api
