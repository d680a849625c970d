#include "platform/storage/transfer/serve_request.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "base/text/utf8.h"
#include "base/threads/retry_after.h"
#include "platform/storage/credential_mask.h"
#include "platform/storage/storage_fault.h"
#include "platform/storage/transfer/activity.h"
#include "platform/storage/transfer/fetch_objects.h"
#include "platform/storage/transfer/kept_list.h"
#include "platform/storage/transfer/object_names.h"
#include "platform/storage/transfer/place_survey.h"
#include "platform/storage/transfer/put_files.h"

namespace tutti::storage {
namespace {

constexpr int64_t kSmallFile = 256 << 10;

// Returns whether the store takes a small file by one request, as Azure's do not.
bool TakesWholeFiles(spec::StoreKind kind) { return kind == spec::StoreKind::kS3; }

constexpr int kAttemptsToLook = 2;  // somebody waits for the answer
constexpr absl::Duration kLongestToldToLook = absl::Seconds(2);
constexpr size_t kLongestMessage = 2000;

Attempts ToLook(Attempts attempts) {
  attempts.most = kAttemptsToLook;
  attempts.longest_told = kLongestToldToLook;
  return attempts;
}

StorageDone TellOf(const Survey& survey, const AnswerWriter& write) {
  StorageDone done{static_cast<int64_t>(survey.objects.size())};
  for (const StoredObject& object : survey.objects) {
    write(object);
    done.bytes += object.bytes;
  }
  return done;
}

// A list tells the ETags of all objects, a digest asks for those that it needs.
absl::StatusOr<StorageDone> List(ObjectStore& store, const StorageRequest& request,
                                 const Attempts& attempts, const AnswerWriter& write) {
  const bool is_list = request.operation == Operation::kList;
  TUTTI_ASSIGN_OR_RETURN(Survey survey, SurveyPlace(store, request.place, request.type, attempts));
  TUTTI_RETURN_IF_ERROR(CheckNames(survey.objects));
  TUTTI_RETURN_IF_ERROR(AskForVersions(store, request.connections, attempts,
                                       is_list ? 0 : request.settled_before, survey));
  StorageDone done = TellOf(survey, is_list ? write : AnswerWriter([](const AnswerLine&) {}));
  done.digest = DigestOf(survey.objects, request.settled_before);
  return done;
}

// An answer is JSON, and would change such a name: what asks for it by that finds nothing.
void LeaveOutNoUtf8(Survey& survey) {
  std::erase_if(survey.objects, [&](StoredObject& object) {
    if (base::BoundedUtf8(object.path) == object.path) return false;
    object.left_out = "its name is not UTF-8";
    survey.left_out.push_back(std::move(object));
    return true;
  });
}

// Answers in the order of the store's list, so that a folder of many objects takes few requests.
absl::StatusOr<StorageDone> Browse(ObjectStore& store, const StorageRequest& request,
                                   const Attempts& attempts, const AnswerWriter& write) {
  TUTTI_ASSIGN_OR_RETURN(
      Survey survey, BrowsePlace(store, request.place, request.type, request.recursive, attempts));
  if (request.tells_left_out) LeaveOutNoUtf8(survey);
  const bool is_kept = !request.list_file.empty();
  StorageDone done = TellOf(survey, is_kept ? AnswerWriter([](const AnswerLine&) {}) : write);
  done.is_file = survey.is_file;
  for (size_t i = 0; request.tells_left_out && i < survey.left_out.size(); ++i) {
    write(survey.left_out[i]);
  }
  if (!is_kept) return done;
  TUTTI_RETURN_IF_ERROR(CheckNames(survey.objects));
  {
    const Activity::OnDisk on_disk(attempts.activity);
    // Without the list the objects are listed once more when they are served, which is no reason to
    // fail.
    KeepList(survey, request.list_file).IgnoreError();
  }
  done.digest = DigestOf(survey.objects, static_cast<int64_t>(kLatestTime));
  return done;
}

// A caller that is told how long the store asks clients to wait does so itself, and says so
// meanwhile.
Attempts AttemptsFor(const StorageRequest& request, Attempts attempts) {
  attempts.returns_longer = request.tells_retry_after;
  const bool is_list = request.operation == Operation::kList ||
                       request.operation == Operation::kDigest ||
                       request.operation == Operation::kBrowse;
  if (is_list && !request.tells_retry_after) attempts.longest_told = kLongestToldToLook;
  return attempts;
}

absl::StatusOr<StorageDone> Do(ObjectStore& store, const StorageRequest& request,
                               const Attempts& attempts, const AnswerWriter& write) {
  const auto progress = [&](const StorageProgress& now) { write(now); };
  if (request.operation == Operation::kStat) {
    const Attempts few = ToLook(attempts);
    TUTTI_ASSIGN_OR_RETURN(const Survey survey,
                           LookAtPlace(store, request.place, request.type, few));
    return TellOf(survey, write);
  }
  if (request.operation == Operation::kList || request.operation == Operation::kDigest) {
    return List(store, request, attempts, write);
  }
  if (request.operation == Operation::kBrowse) return Browse(store, request, attempts, write);
  if (request.operation == Operation::kPut) {
    if (request.place.is_pattern) return absl::InvalidArgumentError("it is a pattern, no folder");
    return PutFiles(store, request.place.path,
                    {.folder = request.folder,
                     .connections = request.connections,
                     .files = request.files,
                     .asks_from = TakesWholeFiles(request.place.kind) ? kSmallFile : 0,
                     .attempts = attempts,
                     .progress = progress,
                     .has_put = write});
  }
  if (request.operation == Operation::kProbe) {
    const Attempts few = ToLook(attempts);
    TUTTI_RETURN_IF_ERROR(ProbeWriting(store, request.place, few));
    return StorageDone{};
  }
  TUTTI_ASSIGN_OR_RETURN(const Survey survey,
                         request.files.empty()
                             ? SurveyPlace(store, request.place, request.type, attempts)
                             : NamedObjects(request.place, request.files));
  if (request.operation == Operation::kRemove) {
    if (!request.files.empty()) {
      return RemoveObjects(store, request.place, survey, request.connections, attempts);
    }
    return RemovePlace(store, request.place, survey, request.connections, attempts);
  }
  FetchOptions options{request.folder, request.connections};
  options.attempts = attempts;
  options.progress = progress;
  options.settled_before = request.settled_before;
  options.formers = request.formers;
  options.peers = request.peers;
  return FetchObjects(store, survey, options);
}

}  // namespace

StorageFailure FailureOf(const absl::Status& status, const StorageRequest& request) {
  const std::string path = ObjectOf(status);
  const std::string object =
      path.empty() ? "" : absl::StrCat(", object \"", base::BoundedUtf8(path, 200), "\"");
  std::string message =
      absl::StrCat(Described(request.place), object, ": ", std::string(status.message()));
  message = MaskOf(request.credentials).Hide(message);
  message = absl::StrReplaceAll(message, {{"\n", " "}, {"\r", " "}});
  absl::Status told = WithSource(
      absl::Status(status.code(), base::BoundedUtf8(message, kLongestMessage)), SourceOf(status));
  if (request.tells_lacking) told = WithLacking(std::move(told), LackingOf(status));
  if (request.tells_retry_after) {
    told = base::WithRetryAfter(std::move(told), base::RetryAfterOf(status));
  }
  return {std::move(told), path};
}

AnswerLine ServeRequest(ObjectStore& store, const StorageRequest& request, const Attempts& attempts,
                        const AnswerWriter& write) {
  const absl::StatusOr<StorageDone> done =
      Do(store, request, AttemptsFor(request, attempts), write);
  if (done.ok()) return *done;
  return FailureOf(done.status(), request);
}

}  // namespace tutti::storage
