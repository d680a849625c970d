#include "platform/api/rest.h"

#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/metrics/prometheus_text.h"
#include "base/status.h"
#include "platform/api/code_answer.h"
#include "platform/api/file_answer.h"
#include "platform/api/json/series_json.h"
#include "platform/api/json/status_json.h"
#include "platform/api/json/usage_json.h"
#include "platform/api/metrics.h"
#include "platform/api/openapi.h"
#include "platform/api/question_answer.h"
#include "platform/api/routing/query.h"
#include "platform/api/stream_answer.h"
#include "platform/api/tracked_logs.h"
#include "platform/mlflow/file_store.h"
#include "spec/json/json_fields.h"
#include "spec/types/secret_limits.h"
#include "spec/views/node_view.h"
#include "spec/views/view_writer.h"

namespace tutti::api {
namespace {

using http::ErrorResponse;
using http::JsonResponse;
using http::Pace;
using http::Response;
using service::Service;

constexpr absl::Duration kPatienceWithFiles = absl::Milliseconds(500);
constexpr uint64_t kMaxJobFile = 1 << 20;
constexpr int kMostJobs = 1000, kMostEvents = 1000, kMostTrials = 1000;
constexpr int kNewestEvents = 200;  // in a job's own view
constexpr int kMostSummaries = 100'000;
constexpr int kMostMeasured = 10'000;  // jobs and nodes
constexpr uint64_t kMaxSnapshot = uint64_t{8} << 30;

Response Health(Service* service, const Call&) {
  return JsonResponse(absl::StrCat(R"({"status": "ok", "version": ")" TUTTI_VERSION
                                   R"(", "disk": ")",
                                   service->DiskIsFull() ? "full" : "ok", R"(", "away": )",
                                   AwayJson(service->AwayFolders()), "}"));
}

Response Problems(Service* service, const Call&) {
  return JsonResponse(spec::ViewWriter::Text(spec::ProblemsView{.problems = service->Problems()}));
}

absl::StatusOr<service::MonitoringLimits> LimitsOf(const http::Request& request) {
  const service::MonitoringLimits usual;
  const auto number = [&](const char* name, size_t otherwise) {
    return QueryNumber(request, name, static_cast<int64_t>(otherwise), 0, kMostMeasured);
  };
  TUTTI_ASSIGN_OR_RETURN(const int64_t jobs, number("jobs", usual.jobs));
  TUTTI_ASSIGN_OR_RETURN(const int64_t nodes, number("nodes", usual.nodes));
  return service::MonitoringLimits{static_cast<size_t>(jobs), static_cast<size_t>(nodes)};
}

Response GetMetrics(Service* service, const std::function<HttpUse()>& http, const Call& call) {
  const auto limits = LimitsOf(call.request);
  if (!limits.ok()) return ErrorResponse(limits.status());
  const base::PrometheusText::Format format = base::FormatFor(call.request.Header("accept"));
  Response response;
  response.content_type = std::string(base::MediaType(format));
  response.headers.emplace_back("Vary", "Accept");
  response.body = MetricsText(
      {service->Monitor(*limits), base::ReadProcessUse(), http ? http() : HttpUse{}}, format);
  return response;
}

Response OpenApi(const Call&) { return JsonResponse(std::string(OpenApiText())); }

Response HasSnapshot(Service* service, const Call& call) {
  return AnswerByFileWork({service, Service::FileWork::kSnapshots, call["snapshot"]},
                          call.connection, [service, name = call["snapshot"]] {
                            const auto file = service->snapshots().Find(name);
                            return file.ok() ? JsonResponse("{}") : ErrorResponse(file.status());
                          });
}

Response GetSnapshot(Service* service, const Call& call) {
  return AnswerByFileWork({service, Service::FileWork::kSnapshots, call["snapshot"]},
                          call.connection, [service, name = call["snapshot"]]() -> Response {
                            const auto file = service->snapshots().Find(name);
                            if (!file.ok()) return ErrorResponse(file.status());
                            return {.content_type = "application/zstd", .file = *file};
                          });
}

absl::Status Receive(Service* service, const Call& call) {
  TUTTI_RETURN_IF_ERROR(service->AwaitFolder(Service::FileWork::kSnapshots, call["snapshot"]));
  TUTTI_ASSIGN_OR_RETURN(auto upload, service->snapshots().Begin(call["snapshot"]));
  TUTTI_RETURN_IF_ERROR(call.connection.ReadBodyTo(
      [&](absl::string_view bytes) { return upload.Write(bytes); }, kMaxSnapshot));
  return upload.Commit();
}

Response PutSnapshot(Service* service, const Call& call) {
  const absl::Status status = Receive(service, call);
  return status.ok() ? JsonResponse("{}", 201) : ErrorResponse(status);
}

Response JobResponse(const absl::StatusOr<service::JobStatus>& job, int status = 200) {
  return job.ok() ? JsonResponse(JobJson(*job), status) : ErrorResponse(job.status());
}

Response CreateJob(Service* service, const Call& call) {
  const auto body = call.connection.ReadBody(kMaxJobFile);
  if (!body.ok()) return ErrorResponse(body.status());
  const auto submission = SubmissionFromJson(*body);
  if (!submission.ok()) return ErrorResponse(submission.status());
  return JobResponse(service->Submit(*submission), 201);
}

Response CheckJob(Service* service, const Call& call) {
  const auto body = call.connection.ReadBody(kMaxJobFile);
  if (!body.ok()) return ErrorResponse(body.status());
  auto submission = SubmissionFromJson(*body);
  if (!submission.ok()) return ErrorResponse(submission.status());
  submission->is_draft = call.request.Query("draft") == "true";
  const auto warnings = service->Check(*submission);
  return warnings.ok() ? JsonResponse(WarningsJson(*warnings)) : ErrorResponse(warnings.status());
}

absl::StatusOr<std::vector<store::JobState>> StatesOf(const http::Request& request) {
  std::vector<store::JobState> states;
  for (const absl::string_view name :
       absl::StrSplit(request.Query("state"), ',', absl::SkipEmpty())) {
    TUTTI_ASSIGN_OR_RETURN(const store::JobState state, store::JobStateFromName(name));
    states.push_back(state);
  }
  return states;
}

absl::StatusOr<store::JobFilter> FilterOf(const http::Request& request, int most) {
  store::JobFilter filter;
  TUTTI_ASSIGN_OR_RETURN(const int64_t limit, QueryNumber(request, "limit", 100, 1, most));
  TUTTI_ASSIGN_OR_RETURN(filter.before, QueryNumber(request, "before", 0, 0));
  filter.limit = static_cast<int>(limit);
  filter.parent = std::string(request.Query("parent"));
  TUTTI_ASSIGN_OR_RETURN(filter.states, StatesOf(request));
  return filter;
}

absl::StatusOr<service::TrialQuery> TrialQueryOf(const http::Request& request) {
  using Order = store::TrialFilter::Order;
  service::TrialQuery query{.after = std::string(request.Query("after"))};
  TUTTI_ASSIGN_OR_RETURN(const int64_t limit, QueryNumber(request, "limit", 100, 1, kMostTrials));
  query.limit = static_cast<int>(limit);
  TUTTI_ASSIGN_OR_RETURN(query.states, StatesOf(request));
  const absl::string_view order = request.Query("order");
  if (order == "best") query.order = Order::kBest;
  if (!order.empty() && order != "best" && order != "number") {
    return absl::InvalidArgumentError("order must be number or best");
  }
  if (query.order == Order::kBest && !query.states.empty()) {
    return absl::InvalidArgumentError("order=best is of completed trials and takes no state");
  }
  return query;
}

Response ListJobs(Service* service, const Call& call) {
  const auto filter = FilterOf(call.request, kMostJobs);
  if (!filter.ok()) return ErrorResponse(filter.status());
  const auto jobs = service->ListJobs(*filter);
  return jobs.ok() ? JsonResponse(JobsJson(*jobs)) : ErrorResponse(jobs.status());
}

Response ListSummaries(Service* service, const Call& call) {
  const auto filter = FilterOf(call.request, kMostSummaries);
  if (!filter.ok()) return ErrorResponse(filter.status());
  const auto jobs = service->ListSummaries(*filter);
  return jobs.ok() ? JsonResponse(SummariesJson(*jobs)) : ErrorResponse(jobs.status());
}

Response ListQueues(Service* service, const Call& call) {
  constexpr int kMostQueued = 1000;
  const auto limit = QueryNumber(call.request, "limit", 100, 1, kMostQueued);
  if (!limit.ok()) return ErrorResponse(limit.status());
  const auto queues = service->ListQueues(static_cast<int>(*limit));
  return queues.ok() ? JsonResponse(QueuesJson(*queues)) : ErrorResponse(queues.status());
}

Response GetJob(Service* service, const Call& call) {
  const auto job = service->GetJob(call["job"]);
  if (!job.ok()) return ErrorResponse(job.status());
  const auto events = service->EventsBefore(call["job"], /*before=*/0, kNewestEvents);
  if (!events.ok()) return ErrorResponse(events.status());
  const auto children = service->ChildrenOf(call["job"]);
  if (!children.ok()) return ErrorResponse(children.status());
  // A folder that does not answer keeps nobody from seeing the rest.
  struct Found {
    mlflow::Logged logged;
    std::vector<mlflow::Metric> reported;  // in its log, also while it runs
    std::optional<uint64_t> peak_memory;
  };
  auto found = std::make_shared<Found>();
  const bool read = service->ReadFilesOf(
      job->record.job.id,
      [found, service, of = job->record.job] {
        found->logged = mlflow::LoggedBelow(service->files().FolderOf(of.id) / "outputs");
        const auto metrics = service->ReportedBy(of, {});
        if (metrics.ok()) found->reported = service::LastValues(*metrics);
        found->peak_memory = service->PeakMemoryOf(of.id);
      },
      base::Deadline::After(kPatienceWithFiles));
  if (!read) found = std::make_shared<Found>();
  JobDetails details{.logged = std::move(found->logged), .peak_memory = found->peak_memory};
  auto removed = service->RemovedOf(job->record.job.id);
  if (!removed.ok()) return ErrorResponse(removed.status());
  details.removed = *std::move(removed);
  auto stored_logs = service->StoredLogsOf(job->record.job.id);
  if (!stored_logs.ok()) return ErrorResponse(stored_logs.status());
  details.stored_logs = *std::move(stored_logs);
  details.run = service->RunOf(job->record.job).value_or(std::nullopt);
  if (details.run) AddTracked(*details.run, details.logged);
  AddReported(found->reported, details.logged);
  return JsonResponse(JobJson(*job, *events, *children, details));
}

Response ListEvents(Service* service, const Call& call) {
  const auto before = QueryNumber(call.request, "before", 0, 0);
  if (!before.ok()) return ErrorResponse(before.status());
  const auto limit = QueryNumber(call.request, "limit", kNewestEvents, 1, kMostEvents);
  if (!limit.ok()) return ErrorResponse(limit.status());
  const auto page = service->EventsBefore(call["job"], *before, static_cast<int>(*limit));
  return page.ok() ? JsonResponse(EventsJson(*page)) : ErrorResponse(page.status());
}

Response GetSubmission(Service* service, const Call& call) {
  const auto job = service->GetJob(call["job"]);
  if (!job.ok()) return ErrorResponse(job.status());
  if (const std::string& parent = job->record.job.parent; !parent.empty()) {
    return ErrorResponse(absl::FailedPreconditionError(
        absl::StrCat(call["job"], " was not submitted by itself, but with ", parent)));
  }
  const bool is_asked = call.request.Query("former") == "true";
  const auto former = is_asked ? service->FormerOf(job->record.job) : std::string();
  if (!former.ok()) return ErrorResponse(former.status());
  return JsonResponse(SubmissionJson(job->record.job, *former));
}

Response ListTrials(Service* service, const Call& call) {
  const auto query = TrialQueryOf(call.request);
  if (!query.ok()) return ErrorResponse(query.status());
  const auto page = service->TrialsOf(call["job"], *query);
  return page.ok() ? JsonResponse(TrialsJson(*page)) : ErrorResponse(page.status());
}

absl::StatusOr<std::optional<int>> RankOf(const http::Request& request) {
  constexpr int kMostRanks = 1 << 20;
  if (request.Query("rank").empty()) return std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(const int64_t rank, QueryNumber(request, "rank", 0, 0, kMostRanks));
  return static_cast<int>(rank);
}

absl::StatusOr<service::UsageQuery> UsageQueryOf(const http::Request& request) {
  constexpr int kMostPoints = 1440;
  service::UsageQuery query;
  TUTTI_ASSIGN_OR_RETURN(query.rank, RankOf(request));
  if (!request.Query("points").empty()) {
    TUTTI_ASSIGN_OR_RETURN(const int64_t points, QueryNumber(request, "points", 1, 1, kMostPoints));
    query.points = static_cast<size_t>(points);
  }
  return query;
}

Response GetUsage(Service* service, const Call& call) {
  const auto query = UsageQueryOf(call.request);
  if (!query.ok()) return ErrorResponse(query.status());
  if (const auto job = service->GetJob(call["job"]); !job.ok()) return ErrorResponse(job.status());
  return AnswerByFileWork({service, Service::FileWork::kReading, call["job"]}, call.connection,
                          [service, job = call["job"], query = *query] {
                            const auto usage = service->UsageOf(job, query);
                            if (!usage.ok()) return ErrorResponse(usage.status());
                            const auto ranks = service->RanksOf(job, query.rank);
                            return ranks.ok() ? JsonResponse(UsageJson(job, *usage, *ranks, query))
                                              : ErrorResponse(ranks.status());
                          });
}

// Returns the range of a course that is asked for; nothing: all of it.
absl::StatusOr<std::optional<service::MetricRange>> MetricRangeOf(const http::Request& request) {
  service::MetricRange range;
  const absl::string_view by = request.Query("by");
  if (!by.empty() && by != "step" && by != "time") {
    return absl::InvalidArgumentError(
        absl::StrCat("by must be step or time, but is \"", by.substr(0, 80), "\""));
  }
  range.by_time = by == "time";
  const bool is_asked = request.query.contains("from") || request.query.contains("to");
  if (!is_asked) return std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(range.from, QueryFinite(request, "from", range.from));
  TUTTI_ASSIGN_OR_RETURN(range.to, QueryFinite(request, "to", range.to));
  if (range.from <= range.to) return range;
  return absl::InvalidArgumentError("from must not be greater than to");
}

absl::StatusOr<service::MetricQuery> MetricQueryOf(const http::Request& request) {
  constexpr int kMostPoints = service::MetricSeries::kMostCourse;
  constexpr int kMostNewest = service::MetricSeries::kMostNewest;
  service::MetricQuery query;
  query.metric = std::string(request.Query("metric"));
  TUTTI_ASSIGN_OR_RETURN(query.rank, RankOf(request));
  TUTTI_ASSIGN_OR_RETURN(query.points, QueryNumber(request, "points", 60, 1, kMostPoints));
  TUTTI_ASSIGN_OR_RETURN(query.newest, QueryNumber(request, "newest", 0, 0, kMostNewest));
  TUTTI_ASSIGN_OR_RETURN(query.range, MetricRangeOf(request));
  return query;
}

Response GetJobMetrics(Service* service, const Call& call) {
  const auto query = MetricQueryOf(call.request);
  if (!query.ok()) return ErrorResponse(query.status());
  const auto job = service->GetJob(call["job"]);
  if (!job.ok()) return ErrorResponse(job.status());
  return AnswerByFileWork(
      {service, Service::FileWork::kReading, call["job"]}, call.connection,
      [service, record = job->record, query = *query] {
        const auto metrics = service->MetricsOf(record.job, query);
        return metrics.ok()
                   ? JsonResponse(SeriesJson(record.job.id, !record.ended().has_value(), *metrics))
                   : ErrorResponse(metrics.status());
      });
}

Response DeleteJob(Service* service, const Call& call) {
  const absl::Status status = service->Delete(call["job"]);
  return status.ok() ? JsonResponse("{}") : ErrorResponse(status);
}

Response ListFiles(Service* service, const Call& call) {
  if (const auto job = service->GetJob(call["job"]); !job.ok()) return ErrorResponse(job.status());
  return AnswerByFileWork(
      {service, Service::FileWork::kReading, call["job"]}, call.connection,
      [service, job = call["job"]] {
        const auto files = service->files().List(job, service->RunningAllocationOf(job));
        return files.ok() ? JsonResponse(FilesJson(*files)) : ErrorResponse(files.status());
      });
}

std::string ContentType(absl::string_view path) {
  if (absl::EndsWith(path, ".json")) return "application/json";
  if (absl::StartsWith(path, "logs/") || absl::EndsWith(path, ".txt")) {
    return "text/plain; charset=utf-8";
  }
  return "application/octet-stream";
}

// A file that is not there may have been.
absl::Status WhyThereIsNone(Service& service, const std::string& job, const std::string& path,
                            const absl::Status& none) {
  const auto removed = service.RemovedOf(job);
  if (!absl::IsNotFound(none) || !removed.ok()) return none;
  const absl::string_view kind = absl::StartsWith(path, "logs/") ? "logs" : "results";
  for (const store::RemovedFiles& files : *removed) {
    if (files.kind != kind) continue;
    return absl::NotFoundError(absl::StrCat(
        "the ", kind, " of job ", job, " were removed on ",
        absl::FormatTime("%Y-%m-%d", files.time, absl::UTCTimeZone()), " by the site's retention"));
  }
  return none;
}

Response FileResponse(Service& service, const std::string& job, const std::string& path) {
  const auto file = service.files().Find(job, path, service.RunningAllocationOf(job));
  if (!file.ok()) return ErrorResponse(WhyThereIsNone(service, job, path, file.status()));
  service.files().NoteUse(job, path);
  return DownloadResponse(ContentType(path), *file);
}

Response GetFile(Service* service, const Call& call) {
  if (const auto job = service->GetJob(call["job"]); !job.ok()) return ErrorResponse(job.status());
  return AnswerByFileWork({service, Service::FileWork::kReading, call["job"]}, call.connection,
                          [service, job = call["job"], path = call["path"]] {
                            return FileResponse(*service, job, path);
                          });
}

Response Prune(Service* service, const Call& call) {
  service::Pruning how;
  for (const auto& [name, field] :
       {std::pair("dry_run", &how.dry_run), {"clock_is_right", &how.clock_is_right}}) {
    const absl::string_view said = call.request.Query(name);
    if (!said.empty() && said != "true" && said != "false") {
      return ErrorResponse(
          absl::InvalidArgumentError(absl::StrCat(name, " must be true or false")));
    }
    *field = said == "true";
  }
  if (const absl::string_view unused = call.request.Query("environments_unused_for");
      !unused.empty()) {
    int64_t seconds = 0;
    if (!absl::SimpleAtoi(unused, &seconds) || seconds < 0) {
      return ErrorResponse(
          absl::InvalidArgumentError("environments_unused_for must be a number of seconds"));
    }
    how.environments_unused_for = absl::Seconds(seconds);
  }
  const auto removals = service->Prune(how);
  if (!removals.ok()) return ErrorResponse(removals.status());
  const auto models = service->models().Count();
  return models.ok() ? JsonResponse(PruneJson(how.dry_run, *removals, *models))
                     : ErrorResponse(models.status());
}

Response PutSecret(Service* service, const Call& call) {
  const auto value = call.connection.ReadBody(spec::kLargestSecret);
  if (!value.ok()) return ErrorResponse(value.status());
  const absl::Status status = service->SetSecret(call["secret"], *value);
  return status.ok() ? JsonResponse("{}") : ErrorResponse(status);
}

Response ListSecrets(Service* service, const Call&) {
  const auto secrets = service->ListSecrets();
  return secrets.ok() ? JsonResponse(SecretsJson(*secrets)) : ErrorResponse(secrets.status());
}

Response DeleteSecret(Service* service, const Call& call) {
  const auto failed = service->DeleteSecret(call["secret"]);
  if (!failed.ok()) return ErrorResponse(failed.status());
  return JsonResponse(spec::ViewWriter::Text(spec::FailedJobsView{.failed_jobs = *failed}));
}

Response RotateSecrets(Service* service, const Call&) {
  const auto count = service->RotateSecrets();
  return count.ok() ? JsonResponse(absl::StrCat("{\"secrets\": ", *count, "}"))
                    : ErrorResponse(count.status());
}

// What is asked is read before the service is; `answer` makes the JSON.
template <typename Answer>
Response AnswerStorage(const Call& call, const Answer& answer) {
  const auto body = call.connection.ReadBody(kMaxJobFile);
  if (!body.ok()) return ErrorResponse(body.status());
  const auto question = StorageQuestionFromJson(*body);
  if (!question.ok()) return ErrorResponse(question.status());
  const absl::StatusOr<std::string> json = answer(*question);
  return json.ok() ? JsonResponse(*json) : ErrorResponse(json.status());
}

Response GrantStorage(Service* service, const Call& call) {
  return AnswerStorage(call, [&](const auto& question) -> absl::StatusOr<std::string> {
    TUTTI_ASSIGN_OR_RETURN(const service::StorageGrant grant, service->GrantStorage(question));
    return service::GrantJson(grant);
  });
}

Response SignStorage(Service* service, const Call& call) {
  return AnswerStorage(call, [&](const auto& question) -> absl::StatusOr<std::string> {
    TUTTI_ASSIGN_OR_RETURN(const service::SignedAddress address, service->SignStorage(question));
    return spec::Dump({{"url", address.url}, {"expires", absl::ToUnixSeconds(address.expires)}});
  });
}

// Who has the address was asked for no token: it is of that job's file, until then.
Response GetSignedFile(Service* service, const Call& call) {
  const auto expires = QueryNumber(call.request, "expires", 0, 0);
  if (!expires.ok()) return ErrorResponse(expires.status());
  const auto submission = QueryNumber(call.request, "submission", 0, 0);
  if (!submission.ok()) return ErrorResponse(submission.status());
  if (absl::FromUnixSeconds(*expires) < absl::Now()) {
    return ErrorResponse(absl::UnauthenticatedError(
        "this address has ended: tutti storage sign job:NAME/PATH makes another"));
  }
  const auto job = service->GetJob(call["job"]);
  if (!job.ok()) return ErrorResponse(job.status());
  if (job->record.job.sequence != *submission) {
    return ErrorResponse(absl::UnauthenticatedError(
        "this address is of an earlier job of that name, which was deleted: tutti storage sign "
        "job:NAME/PATH makes one of this job's"));
  }
  return GetFile(service, call);
}

Response ListNodes(Service* service, const Call&) {
  service::NodeList nodes = service->ListNodes();
  auto file_servers = service->FileServers();
  if (!file_servers.ok()) {
    nodes.warnings.push_back(
        absl::StrCat("the file servers are not known: ", file_servers.status().message()));
    file_servers.emplace();
  }
  return JsonResponse(NodesJson(nodes, *file_servers));
}

Response ListFileServers(Service* service, const Call&) {
  const auto file_servers = service->FileServers();
  return file_servers.ok() ? JsonResponse(FileServersJson(*file_servers))
                           : ErrorResponse(file_servers.status());
}

Response CordonNode(Service* service, const Call& call) {
  const auto body = call.connection.ReadBody(kMaxJobFile);
  if (!body.ok()) return ErrorResponse(body.status());
  const auto reason = ReasonFromJson(*body);
  if (!reason.ok()) return ErrorResponse(reason.status());
  const absl::Status status = service->Cordon(call["compute"], call["node"], *reason);
  return status.ok() ? JsonResponse("{}") : ErrorResponse(status);
}

Response UncordonNode(Service* service, const Call& call) {
  const absl::Status status = service->Uncordon(call["compute"], call["node"]);
  return status.ok() ? JsonResponse("{}") : ErrorResponse(status);
}

Response CheckNode(Service* service, const Call& call) {
  const auto checks = service->CheckNode(call["compute"], call["node"]);
  return checks.ok() ? JsonResponse(ChecksJson(*checks)) : ErrorResponse(checks.status());
}

}  // namespace

// What may wait for folders or networks has a pace, or answers by file work: no call but those
// holds a thread of those that answer lists and cancels.
std::vector<Route> UserRoutes(Service* service, const std::function<HttpUse()>& http) {
  const auto with = [service](Response (*answer)(Service*, const Call&)) {
    return [service, answer](const Call& call) { return answer(service, call); };
  };
  return {
      {"GET", "/openapi.json", Access::kAnyone, OpenApi},
      {"GET", "/v1/health", Access::kAnyone, with(Health)},
      {"GET", "/metrics", Access::kMonitor,
       [service, http](const Call& call) { return GetMetrics(service, http, call); }},
      {"GET", "/v1/problems", Access::kUser, with(Problems), Pace::kSlow, "problems"},
      {"HEAD", "/v1/snapshots/{snapshot}", Access::kUser, with(HasSnapshot)},
      {"GET", "/v1/snapshots/{snapshot}", Access::kUser, with(GetSnapshot)},
      {"PUT", "/v1/snapshots/{snapshot}", Access::kUser, with(PutSnapshot), Pace::kReceives},
      {"POST", "/v1/jobs", Access::kUser, with(CreateJob), Pace::kForeign},
      {"POST", "/v1/job-checks", Access::kUser, with(CheckJob), Pace::kForeign},
      {"GET", "/v1/jobs", Access::kUser, with(ListJobs)},
      {"GET", "/v1/job-summaries", Access::kUser, with(ListSummaries)},
      {"GET", "/v1/queues", Access::kUser, with(ListQueues)},
      {"GET", "/v1/jobs/{job}", Access::kUser, with(GetJob), Pace::kSlow, "job"},
      {"DELETE", "/v1/jobs/{job}", Access::kUser, with(DeleteJob), Pace::kSlow, "deletions"},
      {"POST", "/v1/jobs/{job}/cancel", Access::kUser,
       [service](const Call& call) { return JobResponse(service->Cancel(call["job"])); }},
      {"GET", "/v1/jobs/{job}/events", Access::kUser, with(ListEvents)},
      {"GET", "/v1/jobs/{job}/submission", Access::kUser, with(GetSubmission)},
      {"GET", "/v1/jobs/{job}/code", Access::kUser, with(AnswerCode)},
      {"GET", "/v1/jobs/{job}/trials", Access::kUser, with(ListTrials)},
      {"GET", "/v1/jobs/{job}/usage", Access::kUser, with(GetUsage)},
      {"GET", "/v1/jobs/{job}/metrics", Access::kUser, with(GetJobMetrics)},
      {"POST", "/v1/jobs/{job}/stacks", Access::kUser, with(AnswerStacks), Pace::kSlow, "job"},
      {"POST", "/v1/jobs/{job}/results", Access::kUser, with(AnswerResults), Pace::kSlow, "job"},
      {"GET", "/v1/jobs/{job}/stream", Access::kUser, with(FollowJob), Pace::kQuick, "job"},
      {"GET", "/v1/jobs/{job}/lines", Access::kUser, with(ListLines), Pace::kQuick, "job"},
      {"GET", "/v1/jobs/{job}/files", Access::kUser, with(ListFiles)},
      {"GET", "/v1/jobs/{job}/files/{path...}", Access::kUser, with(GetFile), Pace::kQuick, "job"},
      {"POST", "/v1/prune", Access::kUser, with(Prune), Pace::kSlow, "prune"},
      {"GET", "/v1/secrets", Access::kUser, with(ListSecrets), Pace::kSlow, "secrets"},
      {"PUT", "/v1/secrets/{secret}", Access::kUser, with(PutSecret), Pace::kSlow, "secrets"},
      {"DELETE", "/v1/secrets/{secret}", Access::kUser, with(DeleteSecret), Pace::kSlow, "secrets"},
      {"POST", "/v1/secret-rotations", Access::kUser, with(RotateSecrets), Pace::kSlow, "secrets"},
      {"POST", "/v1/storage-grants", Access::kUser, with(GrantStorage), Pace::kForeign},
      {"POST", "/v1/storage-signatures", Access::kUser, with(SignStorage), Pace::kSlow, "secrets"},
      {"GET", "/v1/signed-files/{job}/{path...}", Access::kSigned, with(GetSignedFile),
       Pace::kQuick, "job"},
      {"GET", "/v1/nodes", Access::kUser, with(ListNodes), Pace::kSlow, "nodes"},
      {"GET", "/v1/file-servers", Access::kUser, with(ListFileServers), Pace::kSlow,
       "file-servers"},
      {"POST", "/v1/nodes/{compute}/{node}/check", Access::kUser, with(CheckNode), Pace::kForeign},
      {"PUT", "/v1/nodes/{compute}/{node}/cordon", Access::kUser, with(CordonNode)},
      {"DELETE", "/v1/nodes/{compute}/{node}/cordon", Access::kUser, with(UncordonNode)},
  };
}

}  // namespace tutti::api
