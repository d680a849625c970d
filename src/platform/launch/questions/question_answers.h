// QuestionAnswers answers the service's questions to this node's launcher (spec/json/question.h),
// of each kind one after the other, by a thread for each kind. End is called before the ranks are
// told to end: no program looks into them from then on, none is left stopped, and nothing of the
// results is sent before the launcher sends all of them. Whatever fails of it is said in the
// answer, and is nothing to the job.
#pragma once

#include <atomic>
#include <functional>
#include <map>
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
#include "spec/json/question.h"

namespace tutti::launch {

// Finds the answer to one question: for each rank that is asked for, JSON. It ends soon once
// `cancelled` is set, unless it waits for the kernel, and refers to nothing that ends before it.
using FindAnswer = std::function<std::map<int, std::string>(const std::atomic<bool>& cancelled)>;

// How questions of one kind are answered; all are called by the thread of NodeProcesses.
struct Answerer {
  // Returns what a thread of its own does then.
  std::function<FindAnswer(const spec::Question& question, std::vector<RankLeader> running)> begin;
  // Breaks off what is under way and waits for something else than `cancelled`.
  std::function<void()> abandon = [] {};
  // Called now and again while one is being answered.
  std::function<void()> look = [] {};
};
using Answerers = std::map<std::string, Answerer>;  // by kind

// Not thread-safe: of the thread of NodeProcesses.
class QuestionAnswers {
 public:
  // `delivery` outlives the object.
  QuestionAnswers(Answerers answerers, Delivery* delivery);
  // Calls End, and waits for the threads; one that waits for the kernel is left to itself, and what
  // it finds is dropped.
  ~QuestionAnswers();

  // Takes up what is asked now; call it again and again while ranks run. It begins to ask a second
  // after the first call, so that what ends within a moment pays nothing. What is asked no more is
  // ended.
  void Look(std::vector<RankLeader> running);
  // Ends what is under way, which takes some 50 ms, and waits for nothing.
  void End();

 private:
  // Shared is kept by the thread, too, which may outlive the object.
  struct Shared {
    std::atomic<bool> cancelled = false;
    absl::Mutex mutex;
    Delivery* delivery ABSL_GUARDED_BY(mutex);  // null: nobody wants the answers
    bool ended ABSL_GUARDED_BY(mutex) = false;
  };
  struct Finding {
    std::string question;
    std::shared_ptr<Shared> shared = std::make_shared<Shared>();
    std::thread thread;
  };
  static void Answer(const spec::Question& question, const FindAnswer& find, Shared& shared);
  void Begin(const spec::Question& question, std::vector<RankLeader> running);
  void Cancel(const std::string& kind, Finding& finding);
  // Takes the thread back if it has ended, or ends within `patience`.
  static bool HasEnded(Finding& finding, absl::Duration patience);

  const Answerers answerers_;
  Delivery* const delivery_;
  std::optional<absl::Duration> began_;  // of who calls Look
  bool ending_ = false;
  std::set<std::string> begun_;  // questions that are or were answered, as long as they are asked
  std::map<std::string, Finding> findings_;  // by kind
};

}  // namespace tutti::launch
