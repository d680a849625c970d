#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/tracking/calls/answers.h"
#include "platform/tracking/calls/calls.h"

namespace tutti::tracking {
namespace {

using http::Response;
using nlohmann::json;
using Result = absl::StatusOr<Response>;

std::optional<RunStatus> StatusIn(RequestFields& fields) {
  const std::string name = fields.TextOrNumber("status", Need::kOptional);
  if (name.empty()) return std::nullopt;
  for (int number = 1; number <= 5; ++number) {
    const auto status = static_cast<RunStatus>(number);
    if (name == NameOf(status) || name == absl::StrCat(number)) return status;
  }
  fields.Fail(absl::InvalidArgumentError(
      absl::StrCat("Invalid value for parameter 'status': '", name,
                   "' is none of RUNNING, SCHEDULED, FINISHED, FAILED, KILLED.")));
  return std::nullopt;
}

Result CreateRun(TrackingStore& store, RequestFields& fields) {
  RunCreation creation{.experiment = ExperimentIn(fields),
                       .user = fields.Text("user_id", Need::kOptional),
                       .name = fields.Text("run_name", Need::kOptional),
                       .start = fields.Integer("start_time", Need::kOptional).value_or(0),
                       .tags = TagsIn(fields, "tags"),
                       .job_run = fields.job_run()};
  TUTTI_RETURN_IF_ERROR(fields.status());
  for (KeyValue& tag : creation.tags) tag.value = CutTag(tag.value);
  TUTTI_ASSIGN_OR_RETURN(const Run run, store.CreateRun(creation));
  return Answer({{"run", JsonOf(run)}});
}

Result GetRun(TrackingStore& store, RequestFields& fields) {
  const std::string id = RunIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const Run run, store.GetRun(id));
  return Answer({{"run", JsonOf(run)}});
}

Result UpdateRun(TrackingStore& store, RequestFields& fields) {
  const std::string id = RunIn(fields);
  const RunChange change{.status = StatusIn(fields),
                         .end = fields.Integer("end_time", Need::kOptional),
                         .name = fields.Text("run_name", Need::kOptional),
                         .by_job = !fields.job_run().empty()};
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const RunInfo run, store.UpdateRun(id, change));
  return Answer({{"run_info", JsonOf(run)}});
}

Result DeleteRun(TrackingStore& store, RequestFields& fields) {
  const std::string id = RunIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.DeleteRun(id));
}

Result RestoreRun(TrackingStore& store, RequestFields& fields) {
  const std::string id = RunIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  return Answer(store.RestoreRun(id));
}

Result SearchRuns(TrackingStore& store, RequestFields& fields) {
  SearchRequest request = SearchIn(fields, Subject::kRuns);
  request.view = ViewIn(fields, "run_view_type");
  const std::vector<int64_t> experiments = ExperimentsIn(fields);
  TUTTI_RETURN_IF_ERROR(fields.status());
  TUTTI_ASSIGN_OR_RETURN(const RunPage page, store.SearchRuns(request, experiments));
  json runs = json::array();
  for (const Run& run : page.runs) runs.push_back(JsonOf(run));
  return AnswerPage("runs", std::move(runs), page.more, request.offset);
}

}  // namespace

std::span<const ApiCall> RunCalls() {
  static constexpr ApiCall kCalls[] = {
      {"POST", "runs/create", CreateRun},   {"GET", "runs/get", GetRun},
      {"POST", "runs/update", UpdateRun},   {"POST", "runs/delete", DeleteRun},
      {"POST", "runs/restore", RestoreRun}, {"POST", "runs/search", SearchRuns},
  };
  return kCalls;
}

}  // namespace tutti::tracking
