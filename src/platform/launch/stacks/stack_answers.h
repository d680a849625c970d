// StackAnswers answers the service's questions for the stacks of this node's ranks
// (spec/json/question.h), by a thread of its own, one question after the other. End is called
// before the ranks are told to end: no program looks into them from then on, and none is left
// stopped. Whatever fails of it is said in the answer, and is nothing to the job.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/process/process_tree.h"
#include "platform/launch/stacks/stack_reading.h"
#include "spec/json/question.h"

namespace tutti::launch {

// Not thread-safe: of the thread of NodeProcesses.
class StackAnswers {
 public:
  // Both outlive the object.
  StackAnswers(StackTools tools, Delivery* delivery, const Spool* spool);
  // Calls End, and waits for the thread; one that waits for the kernel is left to itself, and what
  // it finds is dropped.
  ~StackAnswers();

  // Takes up what is asked now; call it again and again while ranks run. It begins to ask a second
  // after the first call, so that what ends within a moment pays nothing. What is asked no more is
  // ended.
  void Look(std::vector<RankLeader> running);
  // Ends what is under way, which takes some 50 ms, and waits for nothing.
  void End();

 private:
  // What the thread has too, which may be there for longer.
  struct Shared {
    std::atomic<bool> cancelled = false;
    absl::Mutex mutex;
    Delivery* delivery ABSL_GUARDED_BY(mutex);  // null: nobody wants the answers
    bool ended ABSL_GUARDED_BY(mutex) = false;
  };
  struct Reading {
    std::string question;
    std::shared_ptr<Shared> shared = std::make_shared<Shared>();
    std::thread thread;
  };
  static void Answer(const spec::Question& question, const StackRequest& request,
                     const StackTools& tools, const base::TextMask* mask, Shared& shared);
  void Begin(const spec::Question& question, std::vector<RankLeader> running);
  // Takes the thread back if it has ended, or ends within `patience`.
  bool HasEnded(absl::Duration patience);

  const StackTools tools_;
  Delivery* const delivery_;
  const Spool* const spool_;
  std::optional<absl::Duration> began_;  // of who calls Look
  bool ending_ = false;
  std::set<std::string> begun_;  // questions that are or were answered, as long as they are asked
  std::optional<Reading> reading_;
};

}  // namespace tutti::launch
