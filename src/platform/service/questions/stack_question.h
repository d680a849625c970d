// StackQuestion is one question for the stacks of a job's ranks, from the user's call to its
// answer: its launchers fetch it with their own calls and answer rank by rank. It is in memory
// only, and whoever does not answer in time is named. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "platform/service/jobs/notifier.h"
#include "platform/service/questions/stack_groups.h"
#include "spec/json/question.h"
#include "spec/json/rank_stacks.h"

namespace tutti::service {

struct StackQuery {
  std::optional<int> rank;  // this one alone
  bool native = false;      // also what processes have to be stopped for
  absl::Duration wait;      // for the answers
};

// A node of the job, with the ranks that are asked for.
struct AskedNode {
  std::string name;
  std::vector<int> ranks;
  bool listens = false;  // its launcher has asked for questions before
  bool ended = false;    // all of its processes have ended
};

struct StackAnswer {
  struct Missing {
    std::string node;
    std::vector<int> ranks;
    std::string why;
  };
  std::vector<StackGroup> groups;
  std::vector<Missing> missing;  // ranks without stacks
};

class StackQuestion {
 public:
  // The node of index i is nodes[i]. `unheard`: how long a launcher that has never asked for
  // questions is waited for.
  StackQuestion(std::string id, std::string allocation, const StackQuery& query,
                std::vector<AskedNode> nodes, absl::Duration unheard);

  const std::string& id() const { return id_; }
  const std::string& allocation() const { return allocation_; }

  // Returns what that node's launcher, which asks, is asked; nothing if it has answered.
  std::optional<spec::Question> ForNode(int node);
  // Takes its answer for a rank. NotFound if it was not asked, or the answer is there.
  absl::Status Take(int node, int rank, spec::RankStacks stacks);
  // Ends the wait for a node whose processes have all ended.
  void EndNode(int node);
  // Ends it: whoever has not answered by now is missing for `why`.
  void End(absl::string_view why);

  // Returns the answer once it is whole, no more can be waited for, or the time is over; once.
  // Before, sets `again` to when to look next, at the latest.
  std::optional<StackAnswer> Answer(base::Deadline& again);
  // Returns whether nobody waits for it any more, since it was answered or is too late.
  bool IsOver();
  // Has `wake` called when there may be one.
  Subscription OnNews(std::function<void()> wake) { return news_->Subscribe(std::move(wake)); }

 private:
  struct Node {
    AskedNode asked;
    bool was_told = false;                      // its launcher has fetched the question
    std::vector<int> open;                      // ranks without an answer
    std::vector<StackAnswer::Missing> refused;  // ranks whose answer is that there is none
  };
  static void EndNodeNow(Node& node);
  // Returns why the ranks that a node has not answered for have no stacks; "" to wait for it.
  std::string WhyMissing(const Node& node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string id_, allocation_;
  const StackQuery query_;
  const base::Deadline deadline_, unheard_;
  const std::shared_ptr<Notifier> news_ = std::make_shared<Notifier>();
  absl::Mutex mutex_;
  std::vector<Node> nodes_ ABSL_GUARDED_BY(mutex_);
  StackGroups groups_ ABSL_GUARDED_BY(mutex_);
  std::string ended_ ABSL_GUARDED_BY(mutex_);  // why; empty: it has not
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tutti::service
