#include "platform/launch/questions/answerers.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "platform/launch/delivery/results.h"
#include "platform/launch/delivery/upload.h"
#include "platform/launch/outputs/earlier_files.h"
#include "spec/json/rank_stacks.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kToSend = absl::Seconds(3);  // before an answer is too late
constexpr size_t kFilesAtOnce = 200;                  // after which is noted what was sent
// A file that was changed so recently may change once more without its times telling.
constexpr absl::Duration kTellingTime = absl::Seconds(2);

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

// A file as it is on the disk: device, inode, size, times of modification and change.
using SentState = std::array<int64_t, 5>;

// Returns that, and whether a later change will be seen by it; nothing of a file that is gone.
std::optional<std::pair<SentState, bool>> SentStateOf(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  const absl::Time changed =
      std::max(absl::TimeFromTimespec(info.st_mtim), absl::TimeFromTimespec(info.st_ctim));
  const SentState state = {static_cast<int64_t>(info.st_dev), static_cast<int64_t>(info.st_ino),
                           info.st_size, absl::ToUnixNanos(absl::TimeFromTimespec(info.st_mtim)),
                           absl::ToUnixNanos(absl::TimeFromTimespec(info.st_ctim))};
  return std::pair(state, absl::Now() - changed > kTellingTime);
}

// The results of a node while its processes run. By one thread at a time.
class ResultsSoFar {
 public:
  explicit ResultsSoFar(spec::LaunchPlan plan) : plan_(std::move(plan)) {}

  spec::SentResults Send(const spec::Question& question, ServiceLink& link, base::Deadline end,
                         const std::atomic<bool>& cancelled) {
    Results results = ResultsOf(plan_);
    LeaveOutEarlierFiles(plan_, results);
    std::erase_if(results.files, [&](const Result& result) {
      return !absl::StrContains(std::filesystem::path(result.path).filename().native(),
                                question.name) ||
             IsSent(result);
    });
    spec::SentResults sent{.error = std::string(results.failure.message())};
    for (size_t at = 0; at < results.files.size() && !cancelled; at += kFilesAtOnce) {
      if (end.Expired()) {
        sent.error = absl::StrCat(results.files.size() - at, " files were not sent in time");
        break;
      }
      const auto first = results.files.begin() + static_cast<ptrdiff_t>(at);
      const auto last =
          first + static_cast<ptrdiff_t>(std::min(kFilesAtOnce, results.files.size() - at));
      const absl::Status status = SendSome({first, last}, question.id, link, end, sent);
      if (!status.ok() && sent.error.empty()) sent.error = std::string(status.message());
      if (absl::IsAborted(status) || absl::IsCancelled(status)) break;
    }
    return sent;
  }

 private:
  bool IsSent(const Result& result) const {
    const auto known = sent_.find(result.path);
    const auto state = known == sent_.end() ? std::nullopt : SentStateOf(result.file);
    return state && state->first == known->second;
  }

  absl::Status SendSome(const std::vector<Result>& files, const std::string& question,
                        ServiceLink& link, base::Deadline end, spec::SentResults& sent) {
    // As they are before they are read.
    std::vector<std::optional<std::pair<SentState, bool>>> states;
    for (const Result& result : files) states.push_back(SentStateOf(result.file));
    const absl::Status status = UploadResults(files, plan_.node_index, &link, end, question);
    for (size_t i = 0; status.ok() && i < files.size(); ++i) {
      ++sent.files;
      if (!states[i]) continue;
      sent.bytes += states[i]->first[2];
      if (states[i]->second) sent_[files[i].path] = states[i]->first;
    }
    return status;
  }

  const spec::LaunchPlan plan_;
  std::map<std::string, SentState> sent_;  // by their paths
};

}  // namespace

Answerer AnswererOfStacks(StackTools tools, const Spool* spool) {
  const auto begin = [tools = std::move(tools), spool](const spec::Question& question,
                                                       std::vector<RankLeader> running) {
    StackRequest request{
        .leaders = std::move(running),
        .ranks = question.ranks,
        .native = question.native,
        .end = base::Deadline::After(question.time -
                                     std::min(question.time / 2, tools.native_limit + kToSend))};
    return [request = std::move(request), tools,
            mask = spool->mask()](const std::atomic<bool>& cancelled) {
      std::map<int, std::string> answers;
      for (auto& [rank, stacks] : ReadStacks(request, tools, cancelled)) {
        HideSecretsIn(mask.get(), stacks);
        answers[rank] = spec::ToJson(stacks);
      }
      return answers;
    };
  };
  return {.begin = begin};
}

Answerer AnswererOfResults(const spec::LaunchPlan& plan, Delivery* delivery) {
  // What its calls and the thread share.
  struct State {
    std::shared_ptr<ResultsSoFar> results;  // none before it is asked
    std::shared_ptr<ServiceLink> link;      // of the last question
  };
  auto state = std::make_shared<State>();
  const auto begin = [state, &plan, delivery](const spec::Question& question,
                                              const std::vector<RankLeader>&) -> FindAnswer {
    if (state->results == nullptr) state->results = std::make_shared<ResultsSoFar>(plan);
    state->link = delivery->NewLink();
    const auto end = base::Deadline::After(question.time - std::min(question.time / 2, kToSend));
    return [question, end, results = state->results,
            link = state->link](const std::atomic<bool>& cancelled) {
      std::map<int, std::string> answers;
      for (const int rank : question.ranks) {
        answers[rank] = spec::ToJson(results->Send(question, *link, end, cancelled));
      }
      return answers;
    };
  };
  const auto abandon = [state] {
    if (state->link != nullptr) state->link->Abandon();
  };
  return {.begin = begin, .abandon = abandon};
}

}  // namespace tutti::launch
