#include "platform/api/question_answer.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "platform/api/routing/query.h"
#include "platform/service/questions/open_question.h"
#include "spec/json/json_fields.h"

namespace tutti::api {
namespace {

using json = nlohmann::ordered_json;
using service::Service;

constexpr absl::Duration kBetweenLooks = absl::Seconds(1);
constexpr int kHighestRank = 1 << 20;
constexpr int64_t kUsualWait = 60, kLongestStacksWait = 300, kLongestResultsWait = 3600;
constexpr size_t kLongestName = 255;

absl::StatusOr<service::QuestionQuery> StackQueryOf(const http::Request& request) {
  service::QuestionQuery query{.kind = spec::kStacksQuestion};
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

absl::StatusOr<service::QuestionQuery> ResultsQueryOf(const http::Request& request) {
  service::QuestionQuery query{.kind = spec::kResultsQuestion,
                               .name = std::string(request.Query("name"))};
  if (query.name.size() > kLongestName) {
    return absl::InvalidArgumentError("name: a part of a file's name has at most 255 bytes");
  }
  TUTTI_ASSIGN_OR_RETURN(const int64_t wait,
                         QueryNumber(request, "wait", kUsualWait, 1, kLongestResultsWait));
  query.wait = absl::Seconds(wait);
  return query;
}

// What has not been read is null.
json StacksOrNull(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

json ProcessJson(const spec::ProcessStacks& process) {
  return {{"pid", process.pid},
          {"command", process.command},
          {"python", StacksOrNull(process.python)},
          {"native", StacksOrNull(process.native)},
          {"kernel", StacksOrNull(process.kernel)},
          {"notes", process.notes}};
}

json GroupJson(const service::StackGroup& group) {
  json processes = json::array();
  for (const spec::ProcessStacks& process : group.stacks.processes) {
    processes.push_back(ProcessJson(process));
  }
  return {{"ranks", group.ranks},
          {"shown", group.shown},
          {"note", StacksOrNull(group.stacks.error)},
          {"processes", std::move(processes)}};
}

std::string StacksJson(absl::string_view job, const service::QuestionAnswer& answer) {
  json groups = json::array(), missing = json::array();
  for (const service::StackGroup& group : answer.groups) groups.push_back(GroupJson(group));
  for (const service::QuestionAnswer::Missing& left : answer.missing) {
    missing.push_back({{"node", left.node}, {"ranks", left.ranks}, {"why", left.why}});
  }
  return spec::Dump({{"job", job}, {"groups", std::move(groups)}, {"missing", std::move(missing)}});
}

std::string SentResultsJson(absl::string_view job, const service::QuestionAnswer& answer) {
  json nodes = json::array(), missing = json::array();
  for (const service::QuestionAnswer::Sent& sent : answer.sent) {
    nodes.push_back(
        {{"node", sent.node}, {"files", sent.results.files}, {"bytes", sent.results.bytes}});
  }
  for (const service::QuestionAnswer::Missing& left : answer.missing) {
    missing.push_back({{"node", left.node}, {"why", left.why}});
  }
  return spec::Dump({{"job", job}, {"nodes", std::move(nodes)}, {"missing", std::move(missing)}});
}

using WriteAnswer = std::string (*)(absl::string_view job, const service::QuestionAnswer& answer);

// A user's call that waits. The question ends with the last that waits for it.
struct QuestionWaiter {
  Service* service;
  std::string job;
  WriteAnswer write;
  std::shared_ptr<service::OpenQuestion> question;
  service::Subscription of_answers, of_job;

  std::optional<http::Response> Look(base::Deadline& again) const {
    if (absl::IsAborted(service->CheckUnderWay(question->allocation()))) {
      question->End("the job has ended, or begins again");
    }
    auto answer = question->Answer(again);
    // The job's last event comes before it is over for its launchers.
    again = base::Deadline::Sooner(again, base::Deadline::After(kBetweenLooks));
    if (!answer) return std::nullopt;
    return http::JsonResponse(write(job, *answer));
  }
};

absl::StatusOr<std::shared_ptr<QuestionWaiter>> QuestionWaiterOf(
    Service* service, const Call& call, const absl::StatusOr<service::QuestionQuery>& query,
    WriteAnswer write) {
  TUTTI_RETURN_IF_ERROR(query.status());
  auto waiter = std::make_shared<QuestionWaiter>(
      QuestionWaiter{.service = service, .job = call["job"], .write = write});
  TUTTI_ASSIGN_OR_RETURN(waiter->question, service->AskLaunchers(waiter->job, *query));
  waiter->of_answers = waiter->question->OnNews(call.connection.Waker());
  TUTTI_ASSIGN_OR_RETURN(waiter->of_job, service->OnNewsOf(waiter->job, call.connection.Waker()));
  return waiter;
}

http::Response AnswerQuestion(Service* service, const Call& call,
                              const absl::StatusOr<service::QuestionQuery>& query,
                              WriteAnswer write) {
  auto waiter = QuestionWaiterOf(service, call, query, write);
  if (!waiter.ok()) return http::ErrorResponse(waiter.status());
  return {.later = [waiter = *waiter](base::Deadline& again) { return waiter->Look(again); }};
}

}  // namespace

http::Response AnswerStacks(Service* service, const Call& call) {
  return AnswerQuestion(service, call, StackQueryOf(call.request), StacksJson);
}

http::Response AnswerResults(Service* service, const Call& call) {
  return AnswerQuestion(service, call, ResultsQueryOf(call.request), SentResultsJson);
}

}  // namespace tutti::api
