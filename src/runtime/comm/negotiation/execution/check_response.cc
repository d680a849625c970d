#include "runtime/comm/negotiation/execution/check_response.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::comm {
namespace {

absl::Status Expect(bool holds, const Request& request, absl::string_view what) {
  if (holds) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("tensor \"", request.name, "\": ", what));
}

absl::Status CheckRows(const Task& task, const Unit& unit, size_t ranks, size_t own) {
  const Request& request = task.submission.request;
  const size_t parts = request.parts.size();
  TUTTI_RETURN_IF_ERROR(
      Expect(unit.rows.size() == parts * ranks, request, "not the rows of every rank"));
  for (size_t i = 0; i < unit.rows.size(); ++i) {
    TUTTI_RETURN_IF_ERROR(
        Expect(AreRows(request.parts[i % parts], unit.rows[i]), request, "no number of rows"));
  }
  for (size_t part = 0; part < parts; ++part) {
    TUTTI_RETURN_IF_ERROR(Expect(unit.rows[own * parts + part] == task.submission.rows[part],
                                 request, "not this rank's rows"));
  }
  return absl::OkStatus();
}

// What this rank has not asked for, it takes part in beside those who have.
absl::Status CheckWithoutTask(const Request& request, bool joined) {
  TUTTI_RETURN_IF_ERROR(
      Expect(joined && IsRunBesideJoined(request.kind), request, "this rank has not asked for it"));
  return Expect(Check(request).ok(), request, "it makes no sense");
}

}  // namespace

absl::Status CheckResponse(const Response& response,
                           const std::vector<std::unique_ptr<Task>>& tasks, bool joined,
                           const std::vector<int>& ranks, int rank) {
  const auto own = std::lower_bound(ranks.begin(), ranks.end(), rank);
  if (tasks.empty() || tasks.size() != response.units.size() || own == ranks.end() ||
      *own != rank) {
    return absl::InternalError("a response of nothing, or not for this rank");
  }
  const Request* first = nullptr;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const Task* const task = tasks[i].get();
    const Unit& unit = response.units[i];
    const Request& request = task != nullptr ? task->submission.request : unit.request;
    if (task == nullptr) TUTTI_RETURN_IF_ERROR(CheckWithoutTask(request, joined));
    TUTTI_RETURN_IF_ERROR(Expect(unit.code == absl::StatusCode::kOk && request.set == response.set,
                                 request, "an error, or of another process set"));
    TUTTI_RETURN_IF_ERROR(
        Expect(!unit.full || unit.request == request, request, "not what this rank asked for"));
    if (first == nullptr) first = &request;
    TUTTI_RETURN_IF_ERROR(Expect(&request == first || FuseTogether(*first, request), request,
                                 "it cannot be run as one with others"));
    if (request.kind == Kind::kBroadcast) {
      TUTTI_RETURN_IF_ERROR(Expect(std::binary_search(ranks.begin(), ranks.end(), request.root),
                                   request, "its root is not in the process set"));
    }
    if (request.kind != Kind::kAllGather) continue;
    TUTTI_RETURN_IF_ERROR(
        CheckRows(*task, unit, ranks.size(), static_cast<size_t>(own - ranks.begin())));
  }
  return absl::OkStatus();
}

}  // namespace tutti::comm
