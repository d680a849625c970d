// OpenQuestions are the questions that users wait for now. A question lives as long as the user's
// call does that asks it. Thread-safe; no lock is held while anybody waits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "platform/service/questions/stack_question.h"
#include "spec/json/question.h"

namespace tutti::service {

class OpenQuestions {
 public:
  // Asks the launchers of an allocation. FailedPrecondition if somebody asks them already,
  // Unavailable if as many questions are open as there may be.
  absl::StatusOr<std::shared_ptr<StackQuestion>> Ask(const std::string& allocation,
                                                     const StackQuery& query,
                                                     std::vector<AskedNode> nodes,
                                                     absl::Duration unheard);
  // Returns what a launcher is asked now.
  std::vector<spec::Question> ForNode(absl::string_view allocation, int node);
  // Tells that all processes of that node have ended: it is not waited for.
  void EndNode(absl::string_view allocation, int node);
  // Takes its answer for a rank. NotFound if nobody waits for it, any more.
  absl::Status Take(absl::string_view allocation, int node, absl::string_view question, int rank,
                    spec::RankStacks stacks);

 private:
  // Returns that of the allocation; null if nobody waits for one.
  std::shared_ptr<StackQuestion> Find(absl::string_view allocation) ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  // By allocation; those that nobody waits for are gone.
  std::map<std::string, std::weak_ptr<StackQuestion>, std::less<>> open_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tutti::service
