#include "platform/launch/questions/question_answers.h"

#include <exception>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/threads/start_thread.h"
#include "spec/json/rank_stacks.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBeforeAsking = absl::Milliseconds(900);
constexpr absl::Duration kPatienceWithAnswers = absl::Seconds(2);  // with what is under way

// The answers of all kinds say in `error` why there is none; a question of a kind that is not known
// is answered as one for stacks.
std::map<int, std::string> ErrorOfAll(const spec::Question& question, absl::string_view why) {
  std::map<int, std::string> answers;
  for (const int rank : question.ranks) {
    answers[rank] = spec::ToJson(spec::RankStacks{.error = std::string(why)});
  }
  return answers;
}

}  // namespace

QuestionAnswers::QuestionAnswers(Answerers answerers, Delivery* delivery)
    : answerers_(std::move(answerers)), delivery_(delivery) {}

QuestionAnswers::~QuestionAnswers() {
  End();
  for (auto& [kind, finding] : findings_) {
    if (HasEnded(finding, kPatienceWithAnswers)) continue;
    finding.thread.detach();
    absl::MutexLock lock(&finding.shared->mutex);
    finding.shared->delivery = nullptr;
  }
}

void QuestionAnswers::Cancel(const std::string& kind, Finding& finding) {
  if (finding.shared->cancelled.exchange(true)) return;
  answerers_.at(kind).abandon();
}

void QuestionAnswers::End() {
  ending_ = true;
  for (auto& [kind, finding] : findings_) Cancel(kind, finding);
}

bool QuestionAnswers::HasEnded(Finding& finding, absl::Duration patience) {
  {
    absl::MutexLock lock(&finding.shared->mutex);
    if (!finding.shared->mutex.AwaitWithTimeout(absl::Condition(&finding.shared->ended),
                                                patience)) {
      return false;
    }
  }
  finding.thread.join();
  return true;
}

void QuestionAnswers::Look(std::vector<RankLeader> running) {
  const absl::Duration now = base::SteadyNow();
  if (!began_ && !running.empty()) began_ = now;
  if (ending_ || !began_ || now - *began_ < kBeforeAsking) return;
  const std::vector<spec::Question> questions = delivery_->OpenQuestions();
  std::set<std::string> open;
  for (const spec::Question& question : questions) open.insert(question.id);
  std::erase_if(begun_, [&](const std::string& id) { return !open.contains(id); });
  for (auto at = findings_.begin(); at != findings_.end();) {
    if (!open.contains(at->second.question)) Cancel(at->first, at->second);
    answerers_.at(at->first).look();
    at = HasEnded(at->second, absl::ZeroDuration()) ? findings_.erase(at) : std::next(at);
  }
  for (const spec::Question& question : questions) {
    if (findings_.contains(question.kind) || begun_.contains(question.id)) continue;
    begun_.insert(question.id);
    Begin(question, running);
  }
}

void QuestionAnswers::Begin(const spec::Question& question, std::vector<RankLeader> running) {
  std::string why_not =
      absl::StrCat("the launcher of its node knows no question of the kind ", question.kind);
  if (const auto answerer = answerers_.find(question.kind); answerer != answerers_.end()) {
    Finding finding{.question = question.id};
    {
      absl::MutexLock lock(&finding.shared->mutex);
      finding.shared->delivery = delivery_;
    }
    finding.thread =
        base::StartThread([question, find = answerer->second.begin(question, std::move(running)),
                           shared = finding.shared] { Answer(question, find, *shared); });
    if (finding.thread.joinable()) {
      findings_.emplace(question.kind, std::move(finding));
      return;
    }
    why_not = "its node has no thread left for this";
  }
  for (const auto& [rank, json] : ErrorOfAll(question, why_not)) {
    delivery_->OfferAnswer(question.id, rank, json);
  }
}

void QuestionAnswers::Answer(const spec::Question& question, const FindAnswer& find,
                             Shared& shared) {
  std::map<int, std::string> answers;
  try {
    answers = find(shared.cancelled);
  } catch (const std::exception& error) {
    answers = ErrorOfAll(question, error.what());
  }
  for (const auto& [rank, json] : answers) {
    if (shared.cancelled) break;
    absl::MutexLock lock(&shared.mutex);
    if (shared.delivery != nullptr) shared.delivery->OfferAnswer(question.id, rank, json);
  }
  absl::MutexLock lock(&shared.mutex);
  shared.ended = true;
}

}  // namespace tutti::launch
