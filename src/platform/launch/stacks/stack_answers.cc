#include "platform/launch/stacks/stack_answers.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/threads/start_thread.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBeforeAsking = absl::Milliseconds(900);
constexpr absl::Duration kPatienceWithTools =
    absl::Seconds(2);                                 // with what is under way, at the end
constexpr absl::Duration kToSend = absl::Seconds(3);  // before an answer is too late

void HideSecretsIn(const base::TextMask* mask, spec::RankStacks& stacks) {
  if (mask == nullptr) return;
  const auto hide = [mask](std::string& text) { text = mask->Hide(text); };
  hide(stacks.error);
  for (spec::ProcessStacks& process : stacks.processes) {
    for (std::string* text :
         {&process.command, &process.python, &process.native, &process.kernel}) {
      hide(*text);
    }
    std::for_each(process.notes.begin(), process.notes.end(), hide);
  }
}

std::map<int, spec::RankStacks> ErrorOfAll(const spec::Question& question, absl::string_view why) {
  std::map<int, spec::RankStacks> answers;
  for (const int rank : question.ranks) answers[rank].error = std::string(why);
  return answers;
}

}  // namespace

StackAnswers::StackAnswers(StackTools tools, Delivery* delivery, const Spool* spool)
    : tools_(std::move(tools)), delivery_(delivery), spool_(spool) {}

StackAnswers::~StackAnswers() {
  End();
  if (!reading_) return;
  const std::shared_ptr<Shared> shared = reading_->shared;
  if (HasEnded(kPatienceWithTools)) return;
  reading_->thread.detach();
  absl::MutexLock lock(&shared->mutex);
  shared->delivery = nullptr;
}

void StackAnswers::End() {
  ending_ = true;
  if (reading_) reading_->shared->cancelled = true;
}

bool StackAnswers::HasEnded(absl::Duration patience) {
  {
    absl::MutexLock lock(&reading_->shared->mutex);
    if (!reading_->shared->mutex.AwaitWithTimeout(absl::Condition(&reading_->shared->ended),
                                                  patience)) {
      return false;
    }
  }
  reading_->thread.join();
  reading_.reset();
  return true;
}

void StackAnswers::Look(std::vector<RankLeader> running) {
  const absl::Duration now = base::SteadyNow();
  if (!began_ && !running.empty()) began_ = now;
  if (ending_ || !began_ || now - *began_ < kBeforeAsking) return;
  const std::vector<spec::Question> questions = delivery_->OpenQuestions();
  std::set<std::string> open;
  for (const spec::Question& question : questions) open.insert(question.id);
  if (reading_ && !open.contains(reading_->question)) reading_->shared->cancelled = true;
  std::erase_if(begun_, [&](const std::string& id) { return !open.contains(id); });
  if (reading_ && !HasEnded(absl::ZeroDuration())) return;
  for (const spec::Question& question : questions) {
    if (reading_ || begun_.contains(question.id)) continue;
    begun_.insert(question.id);
    Begin(question, running);
  }
}

void StackAnswers::Begin(const spec::Question& question, std::vector<RankLeader> running) {
  Reading reading{.question = question.id};
  {
    absl::MutexLock lock(&reading.shared->mutex);
    reading.shared->delivery = delivery_;
  }
  StackRequest request{
      .leaders = std::move(running),
      .ranks = question.ranks,
      .native = question.native,
      .end = base::Deadline::After(question.time -
                                   std::min(question.time / 2, tools_.native_limit + kToSend))};
  const auto mask = spool_->mask();
  reading.thread = base::StartThread(
      [question, request = std::move(request), tools = tools_, mask, shared = reading.shared] {
        Answer(question, request, tools, mask.get(), *shared);
      });
  if (reading.thread.joinable()) {
    reading_ = std::move(reading);
    return;
  }
  for (const auto& [rank, stacks] : ErrorOfAll(question, "its node has no thread left for this")) {
    delivery_->OfferAnswer(question.id, rank, spec::ToJson(stacks));
  }
}

void StackAnswers::Answer(const spec::Question& question, const StackRequest& request,
                          const StackTools& tools, const base::TextMask* mask, Shared& shared) {
  std::map<int, spec::RankStacks> answers;
  try {
    answers = question.kind == spec::kStacksQuestion
                  ? ReadStacks(request, tools, shared.cancelled)
                  : ErrorOfAll(question, absl::StrCat("the launcher of its node knows no question "
                                                      "of the kind ",
                                                      question.kind));
  } catch (const std::exception& error) {
    answers = ErrorOfAll(question, error.what());
  }
  for (auto& [rank, stacks] : answers) {
    if (shared.cancelled) break;
    HideSecretsIn(mask, stacks);
    const std::string json = spec::ToJson(stacks);
    absl::MutexLock lock(&shared.mutex);
    if (shared.delivery != nullptr) shared.delivery->OfferAnswer(question.id, rank, json);
  }
  absl::MutexLock lock(&shared.mutex);
  shared.ended = true;
}

}  // namespace tutti::launch
