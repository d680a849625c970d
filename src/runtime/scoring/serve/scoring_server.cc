#include "runtime/scoring/serve/scoring_server.h"

#include <algorithm>
#include <random>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "runtime/scoring/report.h"
#include "runtime/scoring/serve/descriptions.h"

namespace tutti::scoring {
namespace {

using http::Connection;
using http::Request;
using http::Response;
using nlohmann::ordered_json;

constexpr absl::Duration kLeastDeadline = absl::Seconds(1);
constexpr char kRequestId[] = "X-Request-Id";
constexpr size_t kLongestId = 128;
// Images that wait have so many bytes at most, whatever their number.
constexpr int64_t kMostWaitingBytes = int64_t{512} << 20;
constexpr int64_t kMostPrefetched = int64_t{256} << 20, kPrefetchedBody = int64_t{8} << 20;
constexpr absl::Duration kDrainLook = absl::Milliseconds(10);

std::string Text(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// {"error": "…"}, in one line.
Response Refusal(int status, absl::string_view message) {
  std::string line(message);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return http::JsonResponse(Text({{"error", line}}), status);
}

Response Refusal(const absl::Status& status) {
  return Refusal(http::ErrorResponse(status).status, status.message());
}

Response MethodNotAllowed(const char* allowed) {
  Response response = Refusal(405, absl::StrCat("only ", allowed, " goes there"));
  response.headers.emplace_back("Allow", allowed);
  return response;
}

Response TooLate(absl::Duration wait) {
  Response response = Refusal(429, "too many images wait: this one could not be answered in time");
  const int64_t seconds =
      std::max<int64_t>(1, absl::ToInt64Seconds(absl::Ceil(wait, absl::Seconds(1))));
  response.headers.emplace_back("Retry-After", absl::StrCat(seconds));
  return response;
}

std::string NewId() {
  static thread_local std::mt19937_64 random{std::random_device{}()};
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad16));
}

// The client's own id, where it is one that a log can take.
std::string IdOf(const Request& request) {
  const absl::string_view given = request.Header("x-request-id");
  const bool fits =
      !given.empty() && given.size() <= kLongestId &&
      std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 127; });
  return fits ? std::string(given) : NewId();
}

// Whether Finished has been called for it.
bool HasId(const Response& response) {
  return std::any_of(response.headers.begin(), response.headers.end(),
                     [](const auto& header) { return header.first == kRequestId; });
}

AccessLine LineOf(const Request& request) {
  return {.time = absl::Now(),
          .id = IdOf(request),
          .peer = request.peer,
          .method = request.method,
          .path = request.path};
}

bool IsImage(const Request& request) {
  const absl::string_view type = request.Header("content-type");
  return absl::StartsWith(type, "image/") ||
         (absl::StartsWith(type, "application/octet-stream") &&
          request.Header("inference-header-content-length").empty());
}

absl::StatusOr<std::optional<uint64_t>> HeaderLengthOf(const Request& request) {
  const absl::string_view given = request.Header("inference-header-content-length");
  uint64_t bytes = 0;
  if (given.empty()) return std::nullopt;
  if (absl::SimpleAtoi(given, &bytes)) return bytes;
  return absl::InvalidArgumentError(absl::StrCat(kHeaderLength, " must be a number of bytes"));
}

// One image's answer: {"predictions": [{"class", "probability"}, …]}, and the mask as base64.
ordered_json AnswerJson(const Head& head, const Image& image, int top) {
  ordered_json answer;
  answer[std::string(head.rows_name())] = JsonOf(head, head.Rows(image.answer, image.size, top));
  const std::string png = head.Png(image.answer);
  if (!png.empty()) answer["mask"] = absl::Base64Escape(png);
  return answer;
}

}  // namespace

// PendingAnswer is a request that waits for its model. It goes when the answer has been made, or
// when the client has gone: then it takes its images out of the queue.
class PendingAnswer {
 public:
  PendingAnswer(ScoringServer& server, ServedModelPtr model, CallPtr call, ScoringServer::Form form,
                InferRequest request, AccessLine line)
      : server_(server),
        model_(std::move(model)),
        call_(std::move(call)),
        form_(form),
        request_(std::move(request)),
        line_(std::move(line)) {
    for (const Image& image : call_->images) {
      bytes_ += static_cast<int64_t>(image.encoded.size() + image.pixels.size() * sizeof(float));
    }
    server_.waiting_bytes_ += bytes_;
    ++server_.pending_;
  }
  ~PendingAnswer() {
    if (!answered_) {
      server_.batcher_.Withdraw(call_);
      Count(Outcome::kClientGone);
      line_.status = 499;  // as nginx has it: the client closed the request
      server_.log_.Write(line_);
    }
    server_.waiting_bytes_ -= bytes_;
    --server_.pending_;
  }
  PendingAnswer(const PendingAnswer&) = delete;
  PendingAnswer& operator=(const PendingAnswer&) = delete;

  std::optional<Response> Poll(base::Deadline& again) {
    if (call_->finished) return Answer();
    const absl::Duration left = call_->deadline - base::SteadyNow();
    if (left > absl::ZeroDuration()) {
      again = base::Deadline::After(left);
      return std::nullopt;
    }
    switch (server_.batcher_.Withdraw(call_)) {
      case Withdrawal::kUnderWay:
        return std::nullopt;  // it is answered soon
      case Withdrawal::kFinished:
        return Answer();
      case Withdrawal::kWithdrawn:
        break;
    }
    return End(Outcome::kTooLate, TooLate(absl::ZeroDuration()));
  }

  // Has it wait for its model, or ends it at once.
  std::optional<Response> Begin(absl::Duration patience) {
    if (server_.draining_) {
      Response response = Refusal(503, "the server ends");
      response.headers.emplace_back("Retry-After", "1");
      return End(Outcome::kTooLate, std::move(response));
    }
    if (server_.waiting_bytes_ > kMostWaitingBytes) {
      return End(Outcome::kTooLate, TooLate(absl::ZeroDuration()));
    }
    const auto late = server_.batcher_.Add(model_->lane, call_, patience);
    if (late) return End(Outcome::kTooLate, TooLate(*late));
    return std::nullopt;
  }

 private:
  Response Answer() {
    if (!call_->status.ok())
      return End(Outcome::kWrongInput, Refusal(400, call_->status.message()));
    for (const Image& image : call_->images) {
      if (image.answer.status.ok()) continue;
      return End(Outcome::kFailed, Refusal(500, image.answer.status.message()));
    }
    const Head& head = model_->model->head();
    if (form_ == ScoringServer::Form::kInfer) {
      InferResponse written =
          WriteInferResponse(request_, call_->images, head, model_->name, model_->version);
      Response response = http::JsonResponse(std::move(written.body));
      if (written.json_bytes) {
        response.content_type = "application/octet-stream";
        response.headers.emplace_back(kHeaderLength, absl::StrCat(*written.json_bytes));
      }
      return End(Outcome::kAnswered, std::move(response));
    }
    if (form_ == ScoringServer::Form::kImage) {
      return End(Outcome::kAnswered,
                 http::JsonResponse(Text(AnswerJson(head, call_->images[0], request_.top))));
    }
    ordered_json list = ordered_json::array();
    for (const Image& image : call_->images) list.push_back(AnswerJson(head, image, request_.top));
    return End(Outcome::kAnswered, http::JsonResponse(Text(list)));
  }

  Response End(Outcome outcome, Response response) {
    answered_ = true;
    Count(outcome);
    return server_.Finished(std::move(response), line_);
  }

  void Count(Outcome outcome) {
    line_.total = base::SteadyNow() - call_->arrived;
    if (outcome == Outcome::kAnswered) line_.queued = call_->began - call_->arrived;
    model_->counters->AddRequest(outcome, call_->images.size(),
                                 {.total = line_.total, .queued = line_.queued});
  }

  ScoringServer& server_;
  const ServedModelPtr model_;
  const CallPtr call_;
  const ScoringServer::Form form_;
  const InferRequest request_;
  AccessLine line_;
  int64_t bytes_ = 0;  // of the images as they came
  bool answered_ = false;
};

absl::StatusOr<std::unique_ptr<ScoringServer>> ScoringServer::Start(ScoringServerOptions options,
                                                                    ModelStore& models,
                                                                    Batcher& batcher,
                                                                    AccessLog& log) {
  std::unique_ptr<ScoringServer> server(
      new ScoringServer(std::move(options), models, batcher, log));
  http::ServerOptions of_http;
  of_http.address = server->options_.address;
  of_http.port = server->options_.port;
  of_http.identity = server->options_.identity;
  of_http.prefetch_bytes = kMostPrefetched;
  // A body beyond the limit is refused by its header.
  of_http.max_prefetched_body =
      std::min(kPrefetchedBody, static_cast<int64_t>(server->options_.max_body));
  of_http.on_answered = [self = server.get()](const http::AnsweredRequest& answered) {
    absl::MutexLock lock(&self->mutex_);
    ++self->answers_[answered.status];
  };
  of_http.admit = [self = server.get()](const Request& request) { return self->Admit(request); };
  TUTTI_ASSIGN_OR_RETURN(
      server->server_,
      http::Server::Start(of_http, [self = server.get()](const Request& request, Connection& c) {
        return self->Handle(request, c);
      }));
  return server;
}

ScoringServer::~ScoringServer() {
  if (server_ != nullptr) server_->Stop(absl::ZeroDuration());
}

void ScoringServer::Drain(absl::Duration grace) {
  draining_ = true;
  const base::Deadline end = base::Deadline::After(grace);
  while (pending_ > 0 && !end.Expired()) absl::SleepFor(kDrainLook);
  server_->Stop(end.Remaining());
}

http::Admission ScoringServer::Admit(const Request& request) {
  http::Admission admission{.role = http::Role::kUser};
  if (absl::EndsWith(request.path, "/load")) admission.pace = http::Pace::kSlow;
  const bool is_open = options_.tokens.empty() || absl::StartsWith(request.path, "/v2/health/") ||
                       (request.method == "OPTIONS" && !options_.allow_origin.empty());
  if (is_open) return admission;
  const absl::string_view given = request.BearerToken();
  bool is_known = false;
  for (const std::string& token : options_.tokens) {
    is_known |= base::EqualInConstantTime(token, given);
  }
  if (is_known) return admission;
  admission.role = http::Role::kStranger;
  Response refusal = Refusal(401, "a token is needed: Authorization: Bearer TOKEN");
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  admission.refusal = Finished(std::move(refusal), LineOf(request));
  return admission;
}

Response ScoringServer::Finished(Response response, AccessLine line) {
  response.headers.emplace_back(kRequestId, line.id);
  if (!options_.allow_origin.empty()) {
    response.headers.emplace_back("Access-Control-Allow-Origin", options_.allow_origin);
    response.headers.emplace_back("Access-Control-Expose-Headers",
                                  absl::StrCat("X-Request-Id, ", kHeaderLength));
  }
  line.status = response.status;
  log_.Write(line);
  return response;
}

Response ScoringServer::Handle(const Request& request, Connection& connection) {
  const absl::Duration begin = base::SteadyNow();
  Response response = Route(request, connection);
  if (response.later || HasId(response)) return response;
  AccessLine line = LineOf(request);
  line.total = base::SteadyNow() - begin;
  return Finished(std::move(response), std::move(line));
}

Response ScoringServer::Route(const Request& request, Connection& connection) {
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  if (request.method == "OPTIONS" && !options_.allow_origin.empty()) {
    Response response{.status = 204};
    response.headers = {
        {"Access-Control-Allow-Methods", "GET, POST"},
        {"Access-Control-Allow-Headers",
         absl::StrCat("Authorization, Content-Type, X-Request-Id, ", kHeaderLength)}};
    return response;
  }
  if (request.path == "/score") {
    if (request.method != "POST") return MethodNotAllowed("POST");
    // Azure ML names one of an endpoint's deployments by a header.
    const std::string name(request.Header("azureml-model-deployment"));
    const auto find = [&]() -> absl::StatusOr<ServedModelPtr> {
      if (name.empty()) return models_.First();
      return models_.Find(name, "");
    };
    return Infer(request, connection, find, Form::kList);
  }
  const std::vector<std::string> path =
      absl::StrSplit(absl::StripSuffix(request.path, "/"), '/');  // the first is ""
  if (path.size() > 1 && path[1] == "v2") {
    if (path.size() > 3 && path[2] == "models") return OfModel(request, connection, path);
    if (path.size() > 3 && path[2] == "repository") {
      return request.method == "POST" ? Repository(path) : MethodNotAllowed("POST");
    }
  }
  if (!is_get) return MethodNotAllowed("GET");
  if (request.path == "/") return {.content_type = "text/plain", .body = "Healthy\n"};
  if (request.path == "/metrics") return Metrics(request);
  if (request.path == "/swagger.json") {
    return http::JsonResponse(
        Text(ScoreDocument(*models_.First(), std::string(request.Query("version")))));
  }
  if (request.path == "/v2") return http::JsonResponse(Text(ServerMetadata()));
  if (request.path == "/v2/health/live") return http::JsonResponse("{\"live\": true}");
  if (request.path == "/v2/health/ready") {
    return draining_ ? Refusal(503, "the server ends") : http::JsonResponse("{\"ready\": true}");
  }
  if (request.path == "/v2/models") {
    ordered_json names = ordered_json::array();
    for (const ServedModelPtr& model : models_.List()) {
      if (names.empty() || names.back() != model->name) names.push_back(model->name);
    }
    return http::JsonResponse(Text({{"models", names}}));
  }
  return Refusal(404, absl::StrCat("there is nothing at ", request.path,
                                   ": models are at /v2/models, and /score"));
}

// /v2/models/NAME[/versions/VERSION][/ready|/infer]
Response ScoringServer::OfModel(const Request& request, Connection& connection,
                                const std::vector<std::string>& path) {
  const bool has_version = path.size() > 5 && path[4] == "versions";
  const size_t end = has_version ? 6 : 4;
  const auto model = models_.Find(path[3], has_version ? path[5] : "");
  if (!model.ok()) return Refusal(model.status());
  const std::string action = path.size() == end ? "" : path[end];
  if (path.size() > end + 1 || (action != "" && action != "ready" && action != "infer")) {
    return Refusal(
        404, absl::StrCat("there is nothing at ", request.path, ": a model has /ready and /infer"));
  }
  if (action == "infer") {
    if (request.method != "POST") return MethodNotAllowed("POST");
    const auto find = [&] { return models_.Find(path[3], has_version ? path[5] : ""); };
    return Infer(request, connection, find, Form::kInfer);
  }
  if (request.method != "GET" && request.method != "HEAD") return MethodNotAllowed("GET");
  if (action == "ready") {
    return draining_ ? Refusal(503, "the server ends")
                     : http::JsonResponse(Text({{"name", path[3]}, {"ready", true}}));
  }
  std::vector<std::string> versions;
  for (const ServedModelPtr& one : models_.List()) {
    if (one->name == path[3]) versions.push_back(one->version);
  }
  return http::JsonResponse(Text(ModelMetadata(**model, versions)));
}

// /v2/repository/index, /v2/repository/models/NAME/load
Response ScoringServer::Repository(const std::vector<std::string>& path) {
  if (path.size() == 4 && path[3] == "index") {
    ordered_json index = ordered_json::array();
    for (const ServedModelPtr& model : models_.List()) {
      index.push_back({{"name", model->name},
                       {"version", model->version},
                       {"state", draining_ ? "UNAVAILABLE" : "READY"},
                       {"reason", ""}});
    }
    return http::JsonResponse(Text(index));
  }
  if (path.size() == 6 && path[3] == "models" && path[5] == "load") {
    const absl::Status status = models_.Load(path[4]);
    return status.ok() ? http::JsonResponse("{}") : Refusal(status);
  }
  return Refusal(404, "a repository has /index and /models/NAME/load");
}

Response ScoringServer::Metrics(const Request& request) const {
  const std::vector<ServedModelPtr> served = models_.List();
  std::vector<ModelMetrics> models;
  for (const ServedModelPtr& one : served) {
    models.push_back({one->name, one->version, one->counters.get(), batcher_.Backlog(one->lane)});
  }
  const auto format = base::FormatFor(request.Header("accept"));
  absl::MutexLock lock(&mutex_);
  return {.content_type = std::string(base::MediaType(format)),
          .body = MetricsText(models, answers_, log_.lost(), format)};
}

// A body may take long to come: the model is looked for behind it, and may be a newer one.
Response ScoringServer::Infer(const Request& request, Connection& connection, const FindModel& find,
                              Form form) {
  if (!request.Header("content-encoding").empty()) {
    return Refusal(415, "bodies are taken as they are, without Content-Encoding");
  }
  absl::StatusOr<std::string> body = connection.ReadBody(options_.max_body);
  const auto model = find();
  if (!model.ok()) return Refusal(model.status());
  const auto refused = [&](const absl::Status& status) {
    (*model)->counters->AddRequest(Outcome::kWrongInput, 0, {});
    return Refusal(status);
  };
  if (!body.ok()) return refused(body.status());
  InferRequest infer;
  if (IsImage(request)) {
    infer.images.push_back({.encoded = *std::move(body)});
    form = Form::kImage;
  } else if (form == Form::kList) {
    auto images = ParseScoreRequest(*body);
    if (!images.ok()) return refused(images.status());
    infer.images = *std::move(images);
  } else {
    const auto json_bytes = HeaderLengthOf(request);
    if (!json_bytes.ok()) return refused(json_bytes.status());
    auto parsed =
        ParseInferRequest(*body, *json_bytes, (*model)->model->facts(), (*model)->model->head());
    if (!parsed.ok()) return refused(parsed.status());
    infer = *std::move(parsed);
  }
  if (const absl::string_view top = request.Query("top"); !top.empty()) {
    if (!absl::SimpleAtoi(top, &infer.top) || infer.top < 1) {
      return refused(absl::InvalidArgumentError("top must be a number of classes, 1 or more"));
    }
  }
  return Submit(request, connection, *model, form, std::move(infer));
}

Response ScoringServer::Submit(const Request& request, Connection& connection,
                               const ServedModelPtr& model, Form form, InferRequest infer) {
  const absl::Duration by_default =
      options_.deadline > absl::ZeroDuration()
          ? options_.deadline
          : std::max(kLeastDeadline, 4 * model->plan.times.back().second);
  const absl::Duration patience = std::min(infer.timeout.value_or(by_default), by_default);
  auto call = std::make_shared<Call>();
  call->images = std::move(infer.images);
  call->wake = connection.Waker();
  AccessLine line = LineOf(request);
  line.model = model->name;
  line.version = model->version;
  line.images = call->images.size();
  auto pending = std::make_shared<PendingAnswer>(*this, model, std::move(call), form,
                                                 std::move(infer), std::move(line));
  if (auto refused = pending->Begin(patience)) return *std::move(refused);
  return {.later = [pending = std::move(pending)](base::Deadline& again) {
    return pending->Poll(again);
  }};
}

}  // namespace tutti::scoring
