// OpenQuestions are the questions that users wait for now. A question lives as long as the user's
// call does that asks it. Two who ask for the results of a job at about the same time wait for the
// same question. Thread-safe; no lock is held while anybody waits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "platform/service/questions/open_question.h"
#include "spec/json/question.h"

namespace tutti::service {

class OpenQuestions {
 public:
  // `shared_for`: how long one for results is that of others who ask the same and wait as long;
  // what it brings may have been read when it came.
  explicit OpenQuestions(absl::Duration shared_for = absl::Seconds(5)) : shared_for_(shared_for) {}

  // Asks the launchers of an allocation. FailedPrecondition if somebody asks for its stacks
  // already, Unavailable if as many questions of that kind are open as there may be.
  absl::StatusOr<std::shared_ptr<OpenQuestion>> Ask(const std::string& allocation,
                                                    const QuestionQuery& query,
                                                    std::vector<AskedNode> nodes,
                                                    absl::Duration unheard,
                                                    KeepOnly keep_only = {});
  // Returns what a launcher is asked now.
  std::vector<spec::Question> ForNode(absl::string_view allocation, int node);
  // Tells that all processes of that node have ended: it is not waited for.
  void EndNode(absl::string_view allocation, int node);
  // Takes its answer for a rank, JSON. NotFound if nobody waits for it, any more; InvalidArgument
  // if it is none.
  absl::Status Take(absl::string_view allocation, int node, absl::string_view question, int rank,
                    absl::string_view json);
  // Returns whether that node's answer to the question is waited for.
  bool IsAsked(absl::string_view allocation, int node, absl::string_view question);

 private:
  // Returns those of the allocation that somebody may wait for.
  std::vector<std::shared_ptr<OpenQuestion>> Of(absl::string_view allocation)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const absl::Duration shared_for_;
  absl::Mutex mutex_;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::weak_ptr<OpenQuestion>> open_ ABSL_GUARDED_BY(mutex_);  // a few
};

}  // namespace tutti::service
