#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/deadline.h"
#include "base/status.h"
#include "platform/tracking/calls/answers.h"
#include "platform/tracking/calls/calls.h"

namespace tutti::tracking {
namespace {

using http::Response;
using Result = absl::StatusOr<Response>;

constexpr int64_t kMostPoints = 25'000;  // of a page, as MLflow has it
constexpr int64_t kPointsOfPiece = 2'000;
constexpr int64_t kMostSampled = 2'500;  // of a run
constexpr size_t kMostRuns = 100;

// "STEP:TIME:BITS" of the last point of a page.
std::string HistoryToken(const Point& last) {
  return absl::StrCat(last.step, ":", last.time, ":", BitsOf(last.value));
}

std::optional<Point> AfterIn(RequestFields& fields) {
  const std::string token = fields.Text("page_token", Need::kOptional);
  if (token.empty()) return std::nullopt;
  const std::vector<absl::string_view> parts = absl::StrSplit(token, ':');
  int64_t bits = 0;
  Point point;
  if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &point.step) &&
      absl::SimpleAtoi(parts[1], &point.time) && absl::SimpleAtoi(parts[2], &bits)) {
    point.value = ValueOf(bits);
    return point;
  }
  fields.Fail(absl::InvalidArgumentError(
      "Invalid page token: it must be one that the last answer has given"));
  return std::nullopt;
}

void AppendPoints(absl::string_view key, const std::vector<Point>& points, absl::string_view run,
                  bool& is_first, std::string& text) {
  for (const Point& point : points) {
    if (!std::exchange(is_first, false)) text += ',';
    AppendPoint(key, point, run, text);
  }
}

struct HistoryQuestion {
  std::string run, key;
  std::string key_json;
  std::optional<Point> after;
};

// Sends a history of any length, and holds a part of it at a time.
class WholeHistory {
 public:
  WholeHistory(TrackingStore* store, HistoryQuestion question)
      : store_(store), question_(std::move(question)) {}

  absl::StatusOr<http::Piece> Next() {
    http::Piece piece;
    if (is_first_piece_) piece.bytes = R"({"metrics":[)";
    is_first_piece_ = false;
    TUTTI_ASSIGN_OR_RETURN(
        const std::vector<Point> points,
        store_->History(question_.run, question_.key, question_.after, kPointsOfPiece));
    AppendPoints(question_.key_json, points, "", is_first_point_, piece.bytes);
    piece.last = points.size() < static_cast<size_t>(kPointsOfPiece);
    if (!points.empty()) question_.after = points.back();
    if (piece.last) piece.bytes += "]}";
    return piece;
  }

 private:
  TrackingStore* const store_;
  HistoryQuestion question_;
  bool is_first_piece_ = true, is_first_point_ = true;
};

Result StreamHistory(TrackingStore& store, HistoryQuestion question) {
  TUTTI_RETURN_IF_ERROR(store.GetRunInfo(question.run).status());  // before the answer begins
  auto history = std::make_shared<WholeHistory>(&store, std::move(question));
  Response response;
  response.stream = [history](base::Deadline&) { return history->Next(); };
  return response;
}

Result GetHistory(TrackingStore& store, RequestFields& fields) {
  HistoryQuestion question{.run = RunIn(fields),
                           .key = fields.Text("metric_key", Need::kRequired),
                           .key_json = {},
                           .after = AfterIn(fields)};
  question.key_json = JsonText(question.key);
  const int64_t most = fields.Integer("max_results", 0, 0, std::numeric_limits<int32_t>::max());
  TUTTI_RETURN_IF_ERROR(fields.status());
  if (most == 0) return StreamHistory(store, std::move(question));
  const int64_t limit = std::min(most, kMostPoints);
  TUTTI_ASSIGN_OR_RETURN(std::vector<Point> points,
                         store.History(question.run, question.key, question.after, limit + 1));
  const bool more = points.size() > static_cast<size_t>(limit);
  if (more) points.pop_back();
  std::string text = R"({"metrics":[)";
  bool is_first = true;
  AppendPoints(question.key_json, points, "", is_first, text);
  text += ']';
  if (more) absl::StrAppend(&text, R"(,"next_page_token":")", HistoryToken(points.back()), "\"");
  text += '}';
  return http::JsonResponse(std::move(text));
}

std::vector<std::string> RunsIn(RequestFields& fields) {
  std::vector<std::string> runs = fields.Texts("run_id");
  if (runs.empty()) {
    fields.Fail(absl::InvalidArgumentError(
        "GetMetricHistoryBulk request must specify at least one run_id."));
  }
  if (runs.size() > kMostRuns) {
    fields.Fail(absl::InvalidArgumentError(
        absl::StrCat("GetMetricHistoryBulk request cannot specify more than ", kMostRuns,
                     " run_ids. Received ", runs.size(), " run_ids.")));
  }
  return runs;
}

std::vector<std::string> SampledRunsIn(RequestFields& fields) {
  std::vector<std::string> runs = fields.Texts("run_ids");
  if (runs.empty()) {
    fields.Fail(absl::InvalidArgumentError("Missing value for required parameter 'run_ids'."));
  }
  if (runs.size() > kMostRuns) {
    fields.Fail(absl::InvalidArgumentError(
        absl::StrCat("GetMetricHistoryBulkInterval request must specify at most ", kMostRuns,
                     " run_ids. Received ", runs.size(), " run_ids.")));
  }
  return runs;
}

StepRange RangeIn(RequestFields& fields) {
  const std::optional<int64_t> first = fields.Integer("start_step", Need::kOptional);
  const std::optional<int64_t> last = fields.Integer("end_step", Need::kOptional);
  if (first.has_value() != last.has_value()) {
    fields.Fail(absl::InvalidArgumentError(
        "If either start step or end step are specified, both must be specified."));
  }
  if (!first || !last) return {};
  if (*first > *last) {
    fields.Fail(absl::InvalidArgumentError(
        absl::StrCat("end_step must be greater than start_step. Found start_step=", *first,
                     " and end_step=", *last, ".")));
  }
  return {*first, *last};
}

// The points of each run in turn, as `points_of` gives them.
template <typename Function>
Result AnswerForRuns(const std::vector<std::string>& runs, const std::string& key,
                     const Function& points_of) {
  std::string text = R"({"metrics":[)";
  const std::string key_json = JsonText(key);
  bool is_first = true;
  for (const std::string& run : runs) {
    TUTTI_ASSIGN_OR_RETURN(const std::vector<Point> points, points_of(run));
    AppendPoints(key_json, points, run, is_first, text);
  }
  text += "]}";
  return http::JsonResponse(std::move(text));
}

Result GetHistoryOfRuns(TrackingStore& store, RequestFields& fields) {
  const std::vector<std::string> runs = RunsIn(fields);
  const std::string key = fields.Text("metric_key", Need::kOptional);
  if (key.empty()) {
    fields.Fail(
        absl::InvalidArgumentError("GetMetricHistoryBulk request must specify a metric_key."));
  }
  int64_t left = fields.Integer("max_results", kMostPoints, 1, kMostPoints);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return AnswerForRuns(runs, key, [&](const std::string& run) {
    auto points = store.History(run, key, std::nullopt, left);
    if (points.ok()) left -= static_cast<int64_t>(points->size());
    return points;
  });
}

Result GetSampledHistory(TrackingStore& store, RequestFields& fields) {
  const std::vector<std::string> runs = SampledRunsIn(fields);
  const std::string key = fields.Text("metric_key", Need::kRequired);
  const StepRange range = RangeIn(fields);
  const int64_t most = fields.Integer("max_results", kMostSampled, 1, kMostSampled);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return AnswerForRuns(runs, key,
                       [&](const std::string& run) { return store.Sample(run, key, range, most); });
}

}  // namespace

std::span<const ApiCall> MetricCalls() {
  static constexpr ApiCall kCalls[] = {
      {"GET", "metrics/get-history", GetHistory},
      {"GET", "metrics/get-history-bulk", GetHistoryOfRuns},
      {"GET", "metrics/get-history-bulk-interval", GetSampledHistory},
  };
  return kCalls;
}

}  // namespace tutti::tracking
