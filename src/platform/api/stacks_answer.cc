#include "platform/api/stacks_answer.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "platform/api/json/stacks_json.h"
#include "platform/api/routing/query.h"

namespace tutti::api {
namespace {

using service::Service;

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr int kHighestRank = 1 << 20;
constexpr int64_t kUsualWait = 60, kLongestStacksWait = 300;

absl::StatusOr<service::StackQuery> StackQueryOf(const http::Request& request) {
  service::StackQuery query;
  if (!request.Query("rank").empty()) {
    TUTTI_ASSIGN_OR_RETURN(const int64_t rank, QueryNumber(request, "rank", 0, 0, kHighestRank));
    query.rank = static_cast<int>(rank);
  }
  TUTTI_ASSIGN_OR_RETURN(query.native, QueryFlag(request, "native", false));
  TUTTI_ASSIGN_OR_RETURN(const int64_t wait,
                         QueryNumber(request, "wait", kUsualWait, 1, kLongestStacksWait));
  query.wait = absl::Seconds(wait);
  return query;
}

// A user's call that waits. The question ends with it.
struct StacksWaiter {
  Service* service;
  std::string job;
  std::shared_ptr<service::StackQuestion> question;
  service::Subscription of_answers, of_job;

  std::optional<http::Response> Look(base::Deadline& again) const {
    if (absl::IsAborted(service->CheckUnderWay(question->allocation()))) {
      question->End("the job has ended, or begins again");
    }
    auto answer = question->Answer(again);
    // The job's last event comes before it is over for its launchers.
    again = base::Deadline::Sooner(again, base::Deadline::After(kBetweenLooks));
    if (!answer) return std::nullopt;
    return http::JsonResponse(StacksJson(job, *answer));
  }
};

absl::StatusOr<std::shared_ptr<StacksWaiter>> StacksWaiterOf(Service* service, const Call& call) {
  TUTTI_ASSIGN_OR_RETURN(const service::StackQuery query, StackQueryOf(call.request));
  auto waiter =
      std::make_shared<StacksWaiter>(StacksWaiter{.service = service, .job = call["job"]});
  TUTTI_ASSIGN_OR_RETURN(waiter->question, service->AskForStacks(waiter->job, query));
  waiter->of_answers = waiter->question->OnNews(call.connection.Waker());
  TUTTI_ASSIGN_OR_RETURN(waiter->of_job, service->OnNewsOf(waiter->job, call.connection.Waker()));
  return waiter;
}

}  // namespace

http::Response AnswerStacks(Service* service, const Call& call) {
  auto waiter = StacksWaiterOf(service, call);
  if (!waiter.ok()) return http::ErrorResponse(waiter.status());
  return {.later = [waiter = *waiter](base::Deadline& again) { return waiter->Look(again); }};
}

}  // namespace tutti::api
