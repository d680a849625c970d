#include "platform/service/questions/open_questions.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tutti::service {
namespace {

constexpr size_t kMostQuestions = 16;  // of a kind

}  // namespace

std::vector<std::shared_ptr<OpenQuestion>> OpenQuestions::Of(absl::string_view allocation) {
  std::vector<std::shared_ptr<OpenQuestion>> questions;
  absl::MutexLock lock(&mutex_);
  for (const std::weak_ptr<OpenQuestion>& open : open_) {
    std::shared_ptr<OpenQuestion> question = open.lock();
    if (question != nullptr && question->allocation() == allocation) {
      questions.push_back(std::move(question));
    }
  }
  return questions;
}

absl::StatusOr<std::shared_ptr<OpenQuestion>> OpenQuestions::Ask(const std::string& allocation,
                                                                 const QuestionQuery& query,
                                                                 std::vector<AskedNode> nodes,
                                                                 absl::Duration unheard,
                                                                 KeepOnly keep_only) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(open_, [](const std::weak_ptr<OpenQuestion>& open) {
    const std::shared_ptr<OpenQuestion> question = open.lock();
    return question == nullptr || question->IsOver();
  });
  const bool for_results = query.kind == spec::kResultsQuestion;
  size_t of_this_kind = 0;
  for (const std::weak_ptr<OpenQuestion>& open : open_) {
    std::shared_ptr<OpenQuestion> question = open.lock();
    if (question == nullptr || question->query().kind != query.kind) continue;
    ++of_this_kind;
    if (question->allocation() != allocation) continue;
    if (!for_results) {
      return absl::FailedPreconditionError(
          "its stacks are being read for somebody else: ask again in a moment");
    }
    const bool is_same =
        question->query().name == query.name && question->query().wait == query.wait;
    if (is_same && question->CameWithin(shared_for_)) return question;
  }
  if (of_this_kind >= kMostQuestions) {
    return absl::UnavailableError(
        absl::StrCat("the service already waits for the ", query.kind, " of ", kMostQuestions,
                     for_results ? " downloads" : " jobs", ": ask again in a moment"));
  }
  // A service that is started anew has other ones.
  auto question = std::make_shared<OpenQuestion>(
      absl::StrCat("q", absl::ToUnixMillis(absl::Now()), "-", ++last_), allocation, query,
      std::move(nodes), unheard, std::move(keep_only));
  open_.push_back(question);
  return question;
}

std::vector<spec::Question> OpenQuestions::ForNode(absl::string_view allocation, int node) {
  std::vector<spec::Question> questions;
  std::set<std::string> kinds;  // whose turn it is
  for (const auto& question : Of(allocation)) {
    const std::string& kind = question->query().kind;
    auto asked = question->ForNode(node, /*is_next=*/!kinds.contains(kind));
    if (!asked) continue;
    kinds.insert(kind);
    questions.push_back(*std::move(asked));
  }
  return questions;
}

void OpenQuestions::EndNode(absl::string_view allocation, int node) {
  for (const auto& question : Of(allocation)) question->EndNode(node);
}

absl::Status OpenQuestions::Take(absl::string_view allocation, int node, absl::string_view question,
                                 int rank, absl::string_view json) {
  for (const auto& open : Of(allocation)) {
    if (open->id() == question) return open->Take(node, rank, json);
  }
  return absl::NotFoundError("nobody waits for this answer");
}

bool OpenQuestions::IsAsked(absl::string_view allocation, int node, absl::string_view question) {
  const auto questions = Of(allocation);
  return std::any_of(questions.begin(), questions.end(), [&](const auto& open) {
    return open->id() == question && open->IsAsked(node);
  });
}

}  // namespace tutti::service
