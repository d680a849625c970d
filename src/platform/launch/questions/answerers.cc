#include "platform/launch/questions/answerers.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
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
constexpr size_t kFilesAtOnce = 200;                  // small ones, between two looks at the time
constexpr size_t kMostPathBytes = 2 << 20;            // of the paths in an answer
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
constexpr size_t kSizeOfState = 2;

struct FoundState {
  SentState state;
  bool tells = false;  // a later change will be seen by it
};

// Returns nothing of a file that is gone.
std::optional<FoundState> FoundStateOf(const std::filesystem::path& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return std::nullopt;
  const absl::Time changed =
      std::max(absl::TimeFromTimespec(info.st_mtim), absl::TimeFromTimespec(info.st_ctim));
  const SentState state = {static_cast<int64_t>(info.st_dev), static_cast<int64_t>(info.st_ino),
                           info.st_size, absl::ToUnixNanos(absl::TimeFromTimespec(info.st_mtim)),
                           absl::ToUnixNanos(absl::TimeFromTimespec(info.st_ctim))};
  return FoundState{state, absl::Now() - changed > kTellingTime};
}

// The paths of all results, as SentResults has them; nothing if they are too many for an answer, or
// some may be there that could not be read.
std::optional<std::vector<std::string>> PresentPaths(const Results& results) {
  if (!results.failure.ok() || !results.unread.ok()) return std::nullopt;
  std::vector<std::string> paths;
  size_t bytes = 0;
  for (const Result& result : results.files) {
    paths.push_back(spec::PathAsSent(result.path));
    bytes += paths.back().size();
  }
  return bytes <= kMostPathBytes ? std::optional(std::move(paths)) : std::nullopt;
}

std::string WhyUnsent(size_t unsent, size_t all, bool is_too_late, const std::string& error) {
  if (unsent == 0) return error;
  std::string why = absl::StrCat(unsent, " of ", all, " files were not sent");
  if (is_too_late) absl::StrAppend(&why, " in time: ask again, or with a longer --wait");
  return error.empty() ? why : absl::StrCat(why, is_too_late ? "; " : ": ", error);
}

// The results of a node while its processes run. By one thread at a time.
class ResultsSoFar {
 public:
  explicit ResultsSoFar(spec::LaunchPlan plan) : plan_(std::move(plan)) {}

  spec::SentResults Send(const spec::Question& question, ServiceLink& link, base::Deadline end,
                         const std::atomic<bool>& cancelled) {
    Results results = ResultsOf(plan_);
    spec::SentResults sent;
    if (question.name.empty()) {
      sent.present = PresentPaths(results);
      ForgetAllBut(results);
    }
    LeaveOutEarlierFiles(plan_, results);
    std::erase_if(results.files, [&](const Result& result) {
      return !absl::StrContains(std::filesystem::path(result.path).filename().native(),
                                question.name);
    });
    const std::vector<Unsent> unsent = UnsentOf(results.files);
    std::string error(results.failure.message());
    for (size_t at = 0; at < unsent.size() && !cancelled && !end.Expired();) {
      const size_t next = EndOfPart(unsent, at);
      const absl::Status status = SendPart(unsent, at, next, question.id, link, end, sent);
      if (absl::IsAborted(status) || absl::IsCancelled(status)) break;
      if (error.empty()) error = std::string(status.message());
      at = next;
    }
    sent.error = WhyUnsent(unsent.size() - static_cast<size_t>(sent.files), unsent.size(),
                           end.Expired(), error);
    return sent;
  }

 private:
  struct Unsent {
    Result result;
    FoundState found;  // before it is read
  };

  // The service may have removed what is not there now.
  void ForgetAllBut(const Results& results) {
    std::set<std::string> present;
    for (const Result& result : results.files) present.insert(result.path);
    std::erase_if(sent_, [&](const auto& known) { return !present.contains(known.first); });
  }

  // The smallest first, so that a checkpoint that takes too long holds up nothing else.
  std::vector<Unsent> UnsentOf(const std::vector<Result>& files) {
    std::vector<Unsent> unsent;
    for (const Result& result : files) {
      const auto found = FoundStateOf(result.file);
      const auto known = sent_.find(result.path);
      const bool is_sent = found && known != sent_.end() && known->second == found->state;
      if (found && !is_sent) unsent.push_back({result, *found});
    }
    std::stable_sort(unsent.begin(), unsent.end(), [](const Unsent& a, const Unsent& b) {
      return a.found.state[kSizeOfState] < b.found.state[kSizeOfState];
    });
    return unsent;
  }

  // Returns where a part that begins there ends: several small files, or one that is not.
  static size_t EndOfPart(const std::vector<Unsent>& unsent, size_t begin) {
    size_t end = begin;
    while (end < std::min(unsent.size(), begin + kFilesAtOnce) &&
           unsent[end].found.state[kSizeOfState] <= static_cast<int64_t>(kSmallResult)) {
      ++end;
    }
    return std::max(end, begin + 1);
  }

  // Counts, and remembers, each file that the service has taken.
  absl::Status SendPart(const std::vector<Unsent>& unsent, size_t begin, size_t end,
                        const std::string& question, ServiceLink& link, base::Deadline deadline,
                        spec::SentResults& sent) {
    std::vector<Result> files;
    std::map<std::string, FoundState> found;
    for (size_t i = begin; i < end; ++i) {
      files.push_back(unsent[i].result);
      found[unsent[i].result.path] = unsent[i].found;
    }
    return UploadResults(files, plan_.node_index, &link, deadline, question,
                         [&](const Result& result) {
                           const FoundState& was = found.at(result.path);
                           ++sent.files;
                           sent.bytes += was.state[kSizeOfState];
                           if (was.tells) sent_[result.path] = was.state;
                         });
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
  // State is what its calls and the thread share.
  struct State {
    std::shared_ptr<ResultsSoFar> results;                             // none before it is asked
    std::shared_ptr<ServiceLink> link;                                 // of the last question
    base::Deadline end = base::Deadline::After(absl::ZeroDuration());  // likewise
  };
  auto state = std::make_shared<State>();
  const auto begin = [state, &plan, delivery](const spec::Question& question,
                                              const std::vector<RankLeader>&) -> FindAnswer {
    if (state->results == nullptr) state->results = std::make_shared<ResultsSoFar>(plan);
    state->link = delivery->NewLink();
    state->end = base::Deadline::After(question.time - std::min(question.time / 2, kToSend));
    return [question, end = state->end, results = state->results,
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
  // A file on its way looks at no time; its answer then says that it is missing.
  const auto look = [state, abandon] {
    if (state->end.Expired()) abandon();
  };
  return {.begin = begin, .abandon = abandon, .look = look};
}

}  // namespace tutti::launch
