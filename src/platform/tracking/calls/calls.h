// Declares the calls of MLflow's REST interface, by their names. Internal to platform/tracking.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "http/message.h"
#include "platform/tracking/calls/request_fields.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::tracking {

struct ApiCall {
  absl::string_view method;  // "GET"
  absl::string_view name;    // "experiments/create"
  absl::StatusOr<http::Response> (*answer)(TrackingStore& store, RequestFields& fields);
};

// BatchCall is a POST whose batch is written with those of others, and answered then
// (store/log_queue.h).
struct BatchCall {
  absl::string_view name;
  absl::StatusOr<LogRequest> (*read)(RequestFields& fields);
};

std::span<const ApiCall> ExperimentCalls();
std::span<const ApiCall> RunCalls();
std::span<const ApiCall> LogCalls();
std::span<const BatchCall> BatchCalls();
std::span<const ApiCall> MetricCalls();

// Reads the tags, or params, of a request: objects with key and value, which are cut.
std::vector<KeyValue> TagsIn(RequestFields& fields, const char* name);
// Reads what a search asks for: filter, order_by, page_token, max_results; the view is the
// caller's, and so is the order of logged models.
SearchRequest SearchIn(RequestFields& fields, Subject subject, int64_t usual_results = 1'000);
ViewType ViewIn(RequestFields& fields, const char* name);
// Reads "run_id", which was "run_uuid".
std::string RunIn(RequestFields& fields);
// Reads an experiment's id; an invalid one gets the same error as one that does not exist.
int64_t ExperimentIn(RequestFields& fields);
// "experiment_ids"; what is no number is no experiment's id.
std::vector<int64_t> ExperimentsIn(RequestFields& fields);
// Answers what a search has found: `rows`, by that name, and a token if there are more behind them.
http::Response AnswerPage(const char* name, nlohmann::json rows, bool more, int64_t offset);

}  // namespace tutti::tracking
