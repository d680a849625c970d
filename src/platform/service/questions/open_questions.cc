#include "platform/service/questions/open_questions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tutti::service {
namespace {

constexpr size_t kMostQuestions = 16;

}  // namespace

std::shared_ptr<StackQuestion> OpenQuestions::Find(absl::string_view allocation) {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(allocation);
  return found == open_.end() ? nullptr : found->second.lock();
}

absl::StatusOr<std::shared_ptr<StackQuestion>> OpenQuestions::Ask(const std::string& allocation,
                                                                  const StackQuery& query,
                                                                  std::vector<AskedNode> nodes,
                                                                  absl::Duration unheard) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(open_, [](const auto& entry) {
    const std::shared_ptr<StackQuestion> question = entry.second.lock();
    return question == nullptr || question->IsOver();
  });
  if (open_.contains(allocation)) {
    return absl::FailedPreconditionError(
        "its stacks are being read for somebody else: ask again in a moment");
  }
  if (open_.size() >= kMostQuestions) {
    return absl::UnavailableError(absl::StrCat("the stacks of ", kMostQuestions,
                                               " jobs are being read: ask again in a moment"));
  }
  // A service that is started anew has other ones.
  auto question = std::make_shared<StackQuestion>(
      absl::StrCat("q", absl::ToUnixMillis(absl::Now()), "-", ++last_), allocation, query,
      std::move(nodes), unheard);
  open_[allocation] = question;
  return question;
}

std::vector<spec::Question> OpenQuestions::ForNode(absl::string_view allocation, int node) {
  const std::shared_ptr<StackQuestion> question = Find(allocation);
  std::vector<spec::Question> questions;
  auto asked = question == nullptr ? std::nullopt : question->ForNode(node);
  if (asked) questions.push_back(*std::move(asked));
  return questions;
}

void OpenQuestions::EndNode(absl::string_view allocation, int node) {
  const std::shared_ptr<StackQuestion> question = Find(allocation);
  if (question != nullptr) question->EndNode(node);
}

absl::Status OpenQuestions::Take(absl::string_view allocation, int node, absl::string_view question,
                                 int rank, spec::RankStacks stacks) {
  const std::shared_ptr<StackQuestion> open = Find(allocation);
  if (open == nullptr || open->id() != question) {
    return absl::NotFoundError("nobody waits for this answer");
  }
  return open->Take(node, rank, std::move(stacks));
}

}  // namespace tutti::service
