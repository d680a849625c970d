#include <limits>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "platform/tracking/calls/answers.h"
#include "platform/tracking/calls/calls.h"

namespace tutti::tracking {
namespace {

constexpr int64_t kMostResults = 50'000;
constexpr size_t kMostExperiments = 10'000;
constexpr char kTokenPrefix[] = "from-";

int64_t OffsetIn(RequestFields& fields) {
  const std::string token = fields.Text("page_token", Need::kOptional);
  if (token.empty()) return 0;
  absl::string_view rest = token;
  int64_t offset = 0;
  if (absl::ConsumePrefix(&rest, kTokenPrefix) && absl::SimpleAtoi(rest, &offset) && offset >= 0 &&
      offset <= std::numeric_limits<int32_t>::max()) {
    return offset;
  }
  fields.Fail(absl::InvalidArgumentError(
      "Invalid page token: it must be one that the last answer has given"));
  return 0;
}

}  // namespace

std::vector<KeyValue> TagsIn(RequestFields& fields, const char* name) {
  std::vector<KeyValue> tags;
  const std::vector<const nlohmann::json*> objects = fields.Objects(name);
  tags.reserve(objects.size());
  for (size_t i = 0; i < objects.size(); ++i) {
    RequestFields tag(*objects[i], absl::StrCat(fields.PathOf(name), "[", i, "]."));
    tags.push_back({tag.Text("key", Need::kRequired), tag.Text("value", Need::kOptional)});
    fields.Fail(tag.status());
  }
  return tags;
}

SearchRequest SearchIn(RequestFields& fields, Subject subject, int64_t usual_results) {
  SearchRequest request;
  request.limit = fields.Integer("max_results", usual_results, 1, kMostResults);
  request.offset = OffsetIn(fields);
  auto filter = ParseFilter(fields.Text("filter", Need::kOptional), subject);
  fields.Fail(filter.status());
  if (filter.ok()) request.filter = *std::move(filter);
  if (subject == Subject::kModels) return request;
  const std::vector<std::string> orders = fields.Texts("order_by");
  if (orders.size() > kMostOrderings) {
    fields.Fail(absl::InvalidArgumentError(
        absl::StrCat("Invalid order_by: it has more than ", kMostOrderings, " clauses.")));
    return request;
  }
  for (const std::string& text : orders) {
    auto order = ParseOrdering(text, subject);
    fields.Fail(order.status());
    if (order.ok()) request.order.push_back(*std::move(order));
  }
  return request;
}

ViewType ViewIn(RequestFields& fields, const char* name) {
  const std::string view = fields.TextOrNumber(name, Need::kOptional);
  // Clients send the name or protobuf's number.
  if (view.empty() || view == "ACTIVE_ONLY" || view == "1") return ViewType::kActiveOnly;
  if (view == "DELETED_ONLY" || view == "2") return ViewType::kDeletedOnly;
  if (view == "ALL" || view == "3") return ViewType::kAll;
  fields.Fail(absl::InvalidArgumentError(absl::StrCat(
      "Invalid value for parameter '", name, "': it must be ACTIVE_ONLY, DELETED_ONLY or ALL.")));
  return ViewType::kActiveOnly;
}

std::string RunIn(RequestFields& fields) {
  return fields.TextOf("run_id", "run_uuid", Need::kRequired);
}

int64_t ExperimentIn(RequestFields& fields) {
  const std::string text = fields.TextOrNumber("experiment_id", Need::kRequired);
  int64_t id = 0;
  if (!fields.status().ok() || absl::SimpleAtoi(text, &id)) return id;
  fields.Fail(absl::NotFoundError(absl::StrCat("No Experiment with id=", text, " exists")));
  return 0;
}

std::vector<int64_t> ExperimentsIn(RequestFields& fields) {
  std::set<int64_t> ids;
  for (const std::string& text : fields.Texts("experiment_ids")) {
    int64_t id = 0;
    if (absl::SimpleAtoi(text, &id)) ids.insert(id);
  }
  if (ids.size() > kMostExperiments) {
    fields.Fail(absl::InvalidArgumentError(
        absl::StrCat("A search takes at most ", kMostExperiments, " experiments.")));
  }
  return {ids.begin(), ids.end()};
}

http::Response AnswerPage(const char* name, nlohmann::json rows, bool more, int64_t offset) {
  const auto count = static_cast<int64_t>(rows.size());
  nlohmann::json answer = {{name, std::move(rows)}};
  if (more) answer["next_page_token"] = absl::StrCat(kTokenPrefix, offset + count);
  return Answer(answer);
}

}  // namespace tutti::tracking
