// OpenQuestion is one question to the launchers of a job (spec/json/question.h), from the user's
// call to its answer: they fetch it with their own calls and answer rank by rank; of results, for
// the first rank of each node. It is in memory only, and whoever does not answer in time is named.
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
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

struct QuestionQuery {
  std::string kind = spec::kStacksQuestion;
  std::optional<int> rank = {};  // of stacks: this one alone
  bool native = false;           // of stacks: also what processes have to be stopped for
  std::string name = "";         // of results: only files with this in their name
  absl::Duration wait;           // for the answers
};

// A node of the job, with the ranks that are asked for.
struct AskedNode {
  std::string name;
  std::vector<int> ranks;
  bool listens = false;  // its launcher has asked for questions before
  bool ended = false;    // all of its processes have ended
};

struct QuestionAnswer {
  struct Missing {
    std::string node;
    std::vector<int> ranks;
    std::string why;
  };
  struct Sent {
    std::string node;
    spec::SentResults results;
  };
  std::vector<StackGroup> groups;  // of stacks
  std::vector<Sent> sent;          // of results
  std::vector<Missing> missing;    // ranks, or nodes with results, that there is no answer for
};

// Called before the answer, of results, once each node has said what it has: with the paths of all
// (PathAsSent), and how long ago, at most, they were listed.
using KeepOnly = std::function<void(const std::set<std::string>& paths, absl::Duration age)>;

class OpenQuestion {
 public:
  // The node of index i is nodes[i]. `unheard`: how long a launcher that has never asked for
  // questions is waited for.
  OpenQuestion(std::string id, std::string allocation, QuestionQuery query,
               std::vector<AskedNode> nodes, absl::Duration unheard, KeepOnly keep_only = {});

  const std::string& id() const { return id_; }
  const std::string& allocation() const { return allocation_; }
  const QuestionQuery& query() const { return query_; }

  // Returns what that node's launcher, which asks, is asked; nothing if it has answered. `is_next`:
  // it answers no other one of this kind before.
  std::optional<spec::Question> ForNode(int node, bool is_next = true);
  // Returns whether that node is waited for.
  bool IsAsked(int node);
  // Returns whether it came within that time.
  bool CameWithin(absl::Duration time) const { return base::SteadyNow() - came_ < time; }
  // Takes its answer for a rank, JSON. NotFound if it was not asked, or the answer is there;
  // InvalidArgument if it is no answer to such a question.
  absl::Status Take(int node, int rank, absl::string_view json);
  // Ends the wait for a node whose processes have all ended.
  void EndNode(int node);
  // Ends it: whoever has not answered by now is missing for `why`.
  void End(absl::string_view why);

  // Returns the answer once it is whole, no more can be waited for, or the time is over; of stacks
  // once, of results to each that waits. Before, sets `again` to when to look next, at the latest.
  std::optional<QuestionAnswer> Answer(base::Deadline& again);
  // Returns whether nobody waits for it any more, since it was answered or is too late.
  bool IsOver();
  // Has `wake` called when there may be one.
  Subscription OnNews(std::function<void()> wake) { return news_->Subscribe(std::move(wake)); }

 private:
  struct Node {
    AskedNode asked;
    bool was_told = false;                         // its launcher has fetched the question
    bool is_next = true;                           // and answers no other one before
    bool has_listed = false;                       // what it has
    std::vector<int> open;                         // ranks without an answer
    std::vector<QuestionAnswer::Missing> refused;  // ranks whose answer is that there is none
  };
  bool AsksForResults() const { return query_.kind == spec::kResultsQuestion; }
  bool IsAskedOf(int node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes the paths that a node has, and returns those of all if it is the last.
  std::optional<std::set<std::string>> AddPresent(int node, std::vector<std::string> paths)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that a rank has answered; null if nobody waits for that.
  Node* CloseRank(int node, int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status TakeStacks(int node, int rank, absl::string_view json) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TakeSent(int node, int rank, absl::string_view json) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndNodeNow(Node& node) const;
  // Returns why the ranks that a node has not answered for have no answer; "" to wait for it.
  std::string WhyMissing(const Node& node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string id_, allocation_;
  const QuestionQuery query_;
  const KeepOnly keep_only_;
  const absl::Duration came_ = base::SteadyNow();
  const base::Deadline deadline_, unheard_;
  const std::shared_ptr<Notifier> news_ = std::make_shared<Notifier>();
  absl::Mutex mutex_;
  std::vector<Node> nodes_ ABSL_GUARDED_BY(mutex_);
  StackGroups groups_ ABSL_GUARDED_BY(mutex_);
  std::vector<QuestionAnswer::Sent> sent_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> present_ ABSL_GUARDED_BY(mutex_);
  size_t present_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string ended_ ABSL_GUARDED_BY(mutex_);  // why; empty: it has not
  bool answered_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tutti::service
