#include "platform/mlflow/run_tree.h"

#include <map>
#include <set>
#include <string>
#include <utility>

namespace tutti::mlflow {
namespace {

class RunTree {
 public:
  explicit RunTree(std::vector<Run> runs) : runs_(std::move(runs)) {
    for (size_t i = 0; i < runs_.size(); ++i) index_[runs_[i].id] = i;
    for (size_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i];
      if (run.parent == run.id || !index_.contains(run.parent)) run.parent.clear();
      below_[run.parent].push_back(i);
      if (!run.metrics.empty()) waiting_.insert(i);
    }
  }

  std::vector<Run> Ordered() {
    for (const size_t i : std::set<size_t>(waiting_)) MarkUpwards(i);
    for (const size_t top : below_[""]) AddFrom(top);
    while (!waiting_.empty()) {  // a circle has no top
      const size_t top = *waiting_.begin();
      runs_[top].parent.clear();
      AddFrom(top);
    }
    return std::move(ordered_);
  }

 private:
  void MarkUpwards(size_t at) {
    while (marked_.insert(at).second && !runs_[at].parent.empty()) at = index_[runs_[at].parent];
  }

  // A stack and no recursion: how deep a job nests its runs is its own choice.
  void AddFrom(size_t top) {
    std::vector<size_t> next = {top};
    while (!next.empty()) {
      const size_t at = next.back();
      next.pop_back();
      if (marked_.erase(at) == 0) continue;
      waiting_.erase(at);
      const std::vector<size_t>& inner = below_[runs_[at].id];
      next.insert(next.end(), inner.rbegin(), inner.rend());
      ordered_.push_back(runs_[at]);
    }
  }

  std::vector<Run> runs_, ordered_;
  std::map<std::string, size_t> index_;               // by id
  std::map<std::string, std::vector<size_t>> below_;  // by the parent's id
  std::set<size_t> waiting_;                          // with metrics, and not told
  std::set<size_t> marked_;                           // to be told
};

}  // namespace

std::vector<Run> WithMetrics(std::vector<Run> runs) { return RunTree(std::move(runs)).Ordered(); }

}  // namespace tutti::mlflow
