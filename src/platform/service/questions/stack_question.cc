#include "platform/service/questions/stack_question.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::service {
namespace {

constexpr size_t kMostBytes = 32 << 20;  // of all stacks that differ

}  // namespace

StackQuestion::StackQuestion(std::string id, std::string allocation, const StackQuery& query,
                             std::vector<AskedNode> nodes, absl::Duration unheard)
    : id_(std::move(id)),
      allocation_(std::move(allocation)),
      query_(query),
      deadline_(base::Deadline::After(query.wait)),
      unheard_(base::Deadline::After(std::min(query.wait, unheard))),
      groups_(kMostBytes) {
  absl::MutexLock lock(&mutex_);
  for (AskedNode& node : nodes) {
    std::vector<int> open = node.ranks;
    nodes_.push_back({.asked = std::move(node), .open = std::move(open)});
    if (nodes_.back().asked.ended) EndNodeNow(nodes_.back());
  }
}

std::optional<spec::Question> StackQuestion::ForNode(int node) {
  absl::MutexLock lock(&mutex_);
  if (node < 0 || node >= static_cast<int>(nodes_.size())) return std::nullopt;
  const bool is_over = !ended_.empty() || deadline_.Expired();
  if (nodes_[node].open.empty() || is_over) return std::nullopt;
  nodes_[node].was_told = true;
  return spec::Question{.id = id_,
                        .kind = spec::kStacksQuestion,
                        .time = deadline_.Remaining(),
                        .ranks = nodes_[node].open,
                        .native = query_.native};
}

absl::Status StackQuestion::Take(int node, int rank, spec::RankStacks stacks) {
  {
    absl::MutexLock lock(&mutex_);
    const bool has_node = node >= 0 && node < static_cast<int>(nodes_.size());
    if (!has_node || !ended_.empty() || std::erase(nodes_[node].open, rank) == 0) {
      return absl::NotFoundError(absl::StrCat("nobody waits for the stacks of rank ", rank));
    }
    std::vector<StackAnswer::Missing>& refused = nodes_[node].refused;
    const std::string& name = nodes_[node].asked.name;
    if (stacks.processes.empty()) {
      refused.push_back({name, {rank}, stacks.error.empty() ? "it has no process" : stacks.error});
    } else if (!groups_.Add(rank, std::move(stacks))) {
      refused.push_back({name, {rank}, "left out: the stacks of other ranks are 32 MiB already"});
    }
  }
  news_->Notify();
  return absl::OkStatus();
}

void StackQuestion::EndNodeNow(Node& node) {
  if (node.open.empty()) return;
  node.refused.push_back({node.asked.name, std::move(node.open), "their processes have ended"});
  node.open.clear();
}

void StackQuestion::EndNode(int node) {
  {
    absl::MutexLock lock(&mutex_);
    if (node < 0 || node >= static_cast<int>(nodes_.size())) return;
    EndNodeNow(nodes_[node]);
  }
  news_->Notify();
}

bool StackQuestion::IsOver() {
  absl::MutexLock lock(&mutex_);
  return answered_ || !ended_.empty() || deadline_.Expired();
}

void StackQuestion::End(absl::string_view why) {
  absl::MutexLock lock(&mutex_);
  if (ended_.empty()) ended_ = std::string(why);
}

std::string StackQuestion::WhyMissing(const Node& node) const {
  if (!ended_.empty()) return ended_;
  if (node.was_told && deadline_.Expired()) return "its launcher did not answer in time";
  if (node.was_told) return "";
  if (!node.asked.listens && unheard_.Expired()) {
    return "its launcher asks for no questions: it is of an earlier version of tutti, or reaches "
           "the service by the shared folder alone";
  }
  if (deadline_.Expired()) return "nothing was heard of its launcher in time";
  return "";
}

std::optional<StackAnswer> StackQuestion::Answer(base::Deadline& again) {
  absl::MutexLock lock(&mutex_);
  StackAnswer answer;
  for (const Node& node : nodes_) {
    if (node.open.empty()) continue;
    const std::string why = WhyMissing(node);
    if (why.empty()) {
      again = unheard_.Expired() ? deadline_ : unheard_;
      return std::nullopt;
    }
    answer.missing.push_back({node.asked.name, node.open, why});
  }
  for (const Node& node : nodes_) {
    answer.missing.insert(answer.missing.end(), node.refused.begin(), node.refused.end());
  }
  answer.groups = groups_.Take();
  answered_ = true;
  return answer;
}

}  // namespace tutti::service
