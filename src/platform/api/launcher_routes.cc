#include "platform/api/launcher_routes.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "http/file_batch.h"
#include "platform/api/file_answer.h"
#include "platform/api/json/status_json.h"
#include "platform/api/routing/query.h"
#include "spec/json/json_fields.h"
#include "spec/json/question.h"
#include "spec/json/usage_sample.h"

namespace tutti::api {
namespace {

using http::JsonResponse;
using http::Pace;
using http::Response;
using service::Service;

constexpr uint64_t kMaxResult = uint64_t{1} << 40;
constexpr uint64_t kMaxUsage = 4 << 20;
constexpr size_t kMostSamples = 120;
constexpr int64_t kLongestWait = 60;
constexpr int64_t kLargestNumber = std::numeric_limits<int32_t>::max();

// An allocation that is over is 410: the launcher ends. A full disk is 503, which launchers wait
// out: they keep what they have.
Response LauncherError(const absl::Status& status) {
  if (absl::IsResourceExhausted(status)) {
    return http::ErrorResponse(absl::UnavailableError(status.message()));
  }
  if (absl::IsAborted(status))
    return http::ErrorResponse(410, "gone", std::string(status.message()));
  return http::ErrorResponse(status);
}

Response JsonOr(const absl::StatusOr<std::string>& json) {
  return json.ok() ? JsonResponse(*json) : LauncherError(json.status());
}

absl::StatusOr<int> NodeOf(const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int64_t node, NumberFrom(call["node"], "node", 0, kLargestNumber));
  return static_cast<int>(node);
}

absl::StatusOr<std::string> Events(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(call));
  TUTTI_ASSIGN_OR_RETURN(const int64_t first, QueryNumber(call.request, "first", 1, 1));
  TUTTI_ASSIGN_OR_RETURN(const std::string body, call.connection.ReadBody());
  const std::vector<std::string> lines = absl::StrSplit(body, '\n', absl::SkipEmpty());
  TUTTI_ASSIGN_OR_RETURN(const Service::Acknowledgement answer,
                         service->ReportEvents(call["allocation"], node, first, lines));
  return absl::StrCat("{\"acknowledged\": ", answer.acknowledged,
                      ", \"go\": ", answer.go ? "true" : "false",
                      answer.served ? ", \"served\": true}" : "}");
}

// A launcher that waits for go.
struct Waiter {
  Service* service;
  std::string allocation;
  int node;
  base::Deadline deadline;
  service::Subscription news;

  std::optional<Response> Look(base::Deadline& again) const {
    const auto go = service->MayGo(allocation, node);
    if (!go.ok()) return LauncherError(go.status());
    again = deadline;
    if (*go == Service::Go::kNotYet && !deadline.Expired()) return std::nullopt;
    return JsonResponse(*go == Service::Go::kYes ? "{\"go\": true}" : "{\"go\": false}");
  }
};

absl::StatusOr<std::shared_ptr<Waiter>> WaiterOf(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(call));
  TUTTI_ASSIGN_OR_RETURN(const int64_t wait,
                         QueryNumber(call.request, "wait", 0, 0, kLargestNumber));
  const auto deadline = base::Deadline::After(absl::Seconds(std::min(wait, kLongestWait)));
  auto waiter = std::make_shared<Waiter>(Waiter{service, call["allocation"], node, deadline, {}});
  TUTTI_ASSIGN_OR_RETURN(
      waiter->news, service->OnNewsOfAllocation(waiter->allocation, node, call.connection.Waker()));
  return waiter;
}

Response Go(Service* service, const Call& call) {
  auto waiter = WaiterOf(service, call);
  if (!waiter.ok()) return LauncherError(waiter.status());
  return {.later = [waiter = *waiter](base::Deadline& again) { return waiter->Look(again); }};
}

// The parameters and the bytes of one call that appends to a rank's output.
struct Piece {
  std::string allocation;
  int node = 0;
  int rank = 0;
  service::LogStream stream = service::LogStream::kStdout;
  uint64_t offset = 0;
  std::string bytes;
};

absl::StatusOr<Piece> PieceOf(const Call& call) {
  Piece piece{.allocation = call["allocation"]};
  TUTTI_ASSIGN_OR_RETURN(piece.node, NodeOf(call));
  TUTTI_ASSIGN_OR_RETURN(const int64_t rank,
                         NumberFrom(call.request.Query("rank"), "rank", 0, kLargestNumber));
  piece.rank = static_cast<int>(rank);
  TUTTI_ASSIGN_OR_RETURN(piece.stream, service::LogStreamFromName(call.request.Query("stream")));
  TUTTI_ASSIGN_OR_RETURN(const int64_t offset, QueryNumber(call.request, "offset", 0, 0));
  piece.offset = static_cast<uint64_t>(offset);
  TUTTI_ASSIGN_OR_RETURN(piece.bytes, call.connection.ReadBody());
  return piece;
}

Response Append(Service* service, const Piece& piece) {
  const auto kept = service->AppendOutput(piece.allocation, piece.node, piece.rank, piece.stream,
                                          piece.offset, piece.bytes);
  if (!kept.ok()) return LauncherError(kept.status());
  return JsonResponse(absl::StrCat("{\"acknowledged\": ", *kept, "}"));
}

// Answers by the thread of the job's output: a log that hangs holds up its job's launchers alone.
Response Output(Service* service, const Call& call) {
  auto piece = PieceOf(call);
  if (!piece.ok()) return LauncherError(piece.status());
  const auto job = service->JobOfLauncher(piece->allocation, piece->node);
  if (!job.ok()) return LauncherError(job.status());
  return AnswerByFileWork({service, Service::FileWork::kOutput, *job}, call.connection,
                          [service, piece = *std::move(piece)] { return Append(service, piece); });
}

absl::StatusOr<std::string> Usage(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(call));
  TUTTI_ASSIGN_OR_RETURN(const int64_t now, QueryNumber(call.request, "now", 0, 0));
  const auto sent = now > 0 ? std::optional(absl::FromUnixMillis(now)) : std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(const std::string body, call.connection.ReadBody(kMaxUsage));
  std::vector<spec::UsageSample> samples;
  std::vector<absl::string_view> lines = absl::StrSplit(body, '\n', absl::SkipEmpty());
  if (lines.size() > kMostSamples) {  // the newest
    lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(kMostSamples));
  }
  // What is no sample does not hold the others up.
  for (const absl::string_view line : lines) {
    absl::StatusOr<spec::UsageSample> sample = spec::UsageSampleFromJson(line);
    if (sample.ok()) samples.push_back(*std::move(sample));
  }
  TUTTI_ASSIGN_OR_RETURN(const absl::Duration pause,
                         service->TakeUsage(call["allocation"], node, std::move(samples), sent));
  return spec::Dump({{"pause", absl::ToInt64Milliseconds(pause)}});
}

absl::StatusOr<std::string> GetQuestions(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(call));
  TUTTI_ASSIGN_OR_RETURN(const spec::Questions questions,
                         service->QuestionsFor(call["allocation"], node));
  return spec::ToJson(questions);
}

absl::StatusOr<std::string> PostAnswer(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(call));
  TUTTI_ASSIGN_OR_RETURN(const int64_t rank,
                         NumberFrom(call.request.Query("rank"), "rank", 0, kLargestNumber));
  TUTTI_ASSIGN_OR_RETURN(const std::string body, call.connection.ReadBody(spec::kLongestAnswer));
  TUTTI_RETURN_IF_ERROR(service->TakeAnswer(call["allocation"], node, call["question"],
                                            static_cast<int>(rank), body));
  return "{}";
}

absl::StatusOr<std::string> PutFile(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(call));
  const int64_t length = call.connection.ContentLength();
  const uint64_t bytes = std::max<int64_t>(length, 0);
  TUTTI_ASSIGN_OR_RETURN(const auto file,
                         service->ReceiveFile(call["allocation"], node, call.request.Query("path"),
                                              bytes, call.request.Query("question")));
  TUTTI_RETURN_IF_ERROR(call.connection.ReadBodyTo(
      [&](absl::string_view bytes) { return file->Write(bytes); }, kMaxResult));
  TUTTI_RETURN_IF_ERROR(file->Commit());
  return "{}";
}

// {"refused": [{"file": I, "why": TEXT}]}: the I-th of the batch, from 0; all others are kept.
std::string RefusedJson(const std::vector<absl::Status>& statuses) {
  nlohmann::json refused = nlohmann::json::array();
  for (size_t i = 0; i < statuses.size(); ++i) {
    if (statuses[i].ok()) continue;
    refused.push_back({{"file", i}, {"why", std::string(statuses[i].message())}});
  }
  return spec::Dump({{"refused", std::move(refused)}});
}

absl::StatusOr<std::string> PostResults(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(call));
  TUTTI_ASSIGN_OR_RETURN(const std::string body, call.connection.ReadBody(http::kLargestBatch));
  TUTTI_ASSIGN_OR_RETURN(const std::vector<http::BatchFile> files, http::FilesOfBatch(body));
  TUTTI_ASSIGN_OR_RETURN(
      const std::vector<absl::Status> statuses,
      service->ReceiveFiles(call["allocation"], node, files, call.request.Query("question")));
  return RefusedJson(statuses);
}

Response SecretsAnswer(Service* service, const std::string& allocation, int node) {
  const auto values = service->SecretsForLauncher(allocation, node);
  return values.ok() ? JsonResponse(SecretValuesJson(*values)) : LauncherError(values.status());
}

// One launcher after another, by one thread: a key that hangs holds none of those that take events.
Response GetSecrets(Service* service, const Call& call) {
  const auto node = NodeOf(call);
  if (!node.ok()) return LauncherError(node.status());
  const auto job = service->JobOfLauncher(call["allocation"], *node);
  if (!job.ok()) return LauncherError(job.status());
  return AnswerByFileWork({service, Service::FileWork::kSecrets, "launchers"}, call.connection,
                          [service, allocation = call["allocation"], node = *node] {
                            return SecretsAnswer(service, allocation, node);
                          });
}

absl::StatusOr<std::string> PostRun(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const int node, NodeOf(call));
  TUTTI_ASSIGN_OR_RETURN(const service::JobRun run, service->BeginRun(call["allocation"], node));
  return spec::Dump({{"run", run.id}, {"experiment", run.experiment}, {"token", run.token}});
}

// To whoever knows the hash of its content.
Response Snapshot(Service* service, const Call& call) {
  const auto allocation = call.parts.find("allocation");
  if (allocation != call.parts.end()) {
    const absl::Status under_way = service->CheckUnderWay(allocation->second);
    if (!under_way.ok()) return LauncherError(under_way);
  }
  return AnswerByFileWork({service, Service::FileWork::kSnapshots, call["snapshot"]},
                          call.connection, [service, name = call["snapshot"]]() -> Response {
                            const auto file = service->snapshots().Find(name);
                            if (!file.ok()) return LauncherError(file.status());
                            return {.content_type = "application/zstd", .file = *file};
                          });
}

}  // namespace

std::vector<Route> LauncherRoutes(Service* service) {
  const auto with = [service](absl::StatusOr<std::string> (*answer)(Service*, const Call&)) {
    return [service, answer](const Call& call) { return JsonOr(answer(service, call)); };
  };
  const auto snapshot = [service](const Call& call) { return Snapshot(service, call); };
  const auto output = [service](const Call& call) { return Output(service, call); };
  const auto secrets = [service](const Call& call) { return GetSecrets(service, call); };
  const std::string all = "/internal/v1/allocations/{allocation}";
  const std::string node = all + "/nodes/{node}";
  return {
      {"POST", node + "/events", Access::kLauncher, with(Events)},
      {"GET", node + "/go", Access::kLauncher,
       [service](const Call& call) { return Go(service, call); }},
      {"POST", node + "/usage", Access::kLauncher, with(Usage)},
      {"GET", node + "/questions", Access::kLauncher, with(GetQuestions)},
      {"POST", node + "/answers/{question}", Access::kLauncher, with(PostAnswer), Pace::kReceives,
       "allocation"},
      {"GET", node + "/secrets", Access::kLauncher, secrets},
      {"POST", node + "/run", Access::kLauncher, with(PostRun)},
      {"POST", node + "/output", Access::kLauncher, output, Pace::kQuick, "allocation"},
      {"POST", node + "/results", Access::kLauncher, with(PostResults), Pace::kReceives,
       "allocation"},
      {"PUT", node + "/files", Access::kLauncher, with(PutFile), Pace::kReceives, "allocation"},
      {"GET", all + "/snapshots/{snapshot}", Access::kLauncher, snapshot, Pace::kQuick,
       "allocation"},
      // Serves launchers of versions in which allocations had no tokens yet.
      {"GET", "/internal/v1/snapshots/{snapshot}", Access::kLauncher, snapshot},
  };
}

}  // namespace tutti::api
