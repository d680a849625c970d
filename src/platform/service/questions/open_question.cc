#include "platform/service/questions/open_question.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace tutti::service {
namespace {

constexpr size_t kMostBytes = 32 << 20;  // of all stacks that differ, or of all paths

}  // namespace

OpenQuestion::OpenQuestion(std::string id, std::string allocation, QuestionQuery query,
                           std::vector<AskedNode> nodes, absl::Duration unheard, KeepOnly keep_only)
    : id_(std::move(id)),
      allocation_(std::move(allocation)),
      query_(std::move(query)),
      keep_only_(std::move(keep_only)),
      deadline_(base::Deadline::After(query_.wait)),
      unheard_(base::Deadline::After(std::min(query_.wait, unheard))),
      groups_(kMostBytes) {
  absl::MutexLock lock(&mutex_);
  for (AskedNode& node : nodes) {
    std::vector<int> open = node.ranks;
    nodes_.push_back({.asked = std::move(node), .open = std::move(open)});
    if (nodes_.back().asked.ended) EndNodeNow(nodes_.back());
  }
}

bool OpenQuestion::IsAskedOf(int node) const {
  const bool is_over = !ended_.empty() || deadline_.Expired();
  return node >= 0 && node < static_cast<int>(nodes_.size()) && !is_over &&
         !nodes_[node].open.empty();
}

bool OpenQuestion::IsAsked(int node) {
  absl::MutexLock lock(&mutex_);
  return IsAskedOf(node);
}

std::optional<spec::Question> OpenQuestion::ForNode(int node, bool is_next) {
  absl::MutexLock lock(&mutex_);
  if (!IsAskedOf(node)) return std::nullopt;
  nodes_[node].was_told = true;
  nodes_[node].is_next = is_next;
  return spec::Question{.id = id_,
                        .kind = query_.kind,
                        .time = deadline_.Remaining(),
                        .ranks = nodes_[node].open,
                        .native = query_.native,
                        .name = query_.name};
}

absl::Status OpenQuestion::Take(int node, int rank, absl::string_view json) {
  TUTTI_RETURN_IF_ERROR(AsksForResults() ? TakeSent(node, rank, json)
                                         : TakeStacks(node, rank, json));
  news_->Notify();
  return absl::OkStatus();
}

OpenQuestion::Node* OpenQuestion::CloseRank(int node, int rank) {
  const bool has_node = node >= 0 && node < static_cast<int>(nodes_.size());
  if (!has_node || !ended_.empty() || std::erase(nodes_[node].open, rank) == 0) return nullptr;
  return &nodes_[node];
}

absl::Status OpenQuestion::TakeStacks(int node, int rank, absl::string_view json) {
  TUTTI_ASSIGN_OR_RETURN(spec::RankStacks stacks, spec::RankStacksFromJson(json));
  absl::MutexLock lock(&mutex_);
  Node* const of = CloseRank(node, rank);
  if (of == nullptr) {
    return absl::NotFoundError(absl::StrCat("nobody waits for the stacks of rank ", rank));
  }
  const std::string& name = of->asked.name;
  if (stacks.processes.empty()) {
    of->refused.push_back(
        {name, {rank}, stacks.error.empty() ? "it has no process" : stacks.error});
  } else if (!groups_.Add(rank, std::move(stacks))) {
    of->refused.push_back({name, {rank}, "left out: the stacks of other ranks are 32 MiB already"});
  }
  return absl::OkStatus();
}

absl::Status OpenQuestion::TakeSent(int node, int rank, absl::string_view json) {
  TUTTI_ASSIGN_OR_RETURN(spec::SentResults results, spec::SentResultsFromJson(json));
  if (auto present = std::exchange(results.present, std::nullopt)) {
    const auto all = AddPresent(node, *std::move(present));
    if (all && keep_only_) keep_only_(*all, base::SteadyNow() - came_);
  }
  absl::MutexLock lock(&mutex_);
  Node* const of = CloseRank(node, rank);
  if (of == nullptr) return absl::NotFoundError("nobody waits for the results of that node");
  if (!results.error.empty()) of->refused.push_back({of->asked.name, {rank}, results.error});
  sent_.push_back({of->asked.name, std::move(results)});
  return absl::OkStatus();
}

std::optional<std::set<std::string>> OpenQuestion::AddPresent(int node,
                                                              std::vector<std::string> paths) {
  absl::MutexLock lock(&mutex_);
  if (!IsAskedOf(node) || std::exchange(nodes_[node].has_listed, true)) return std::nullopt;
  for (std::string& path : paths) {
    present_bytes_ += path.size();
    if (present_bytes_ <= kMostBytes) present_.insert(std::move(path));
  }
  const bool is_whole =
      std::all_of(nodes_.begin(), nodes_.end(), [](const Node& of) { return of.has_listed; });
  if (!is_whole || present_bytes_ > kMostBytes) return std::nullopt;
  return std::move(present_);
}

// Such a node sends its results by itself.
void OpenQuestion::EndNodeNow(Node& node) const {
  if (!node.open.empty() && !AsksForResults()) {
    node.refused.push_back({node.asked.name, node.open, "their processes have ended"});
  }
  node.open.clear();
}

void OpenQuestion::EndNode(int node) {
  {
    absl::MutexLock lock(&mutex_);
    if (node < 0 || node >= static_cast<int>(nodes_.size())) return;
    EndNodeNow(nodes_[node]);
  }
  news_->Notify();
}

bool OpenQuestion::IsOver() {
  absl::MutexLock lock(&mutex_);
  return answered_ || !ended_.empty() || deadline_.Expired();
}

void OpenQuestion::End(absl::string_view why) {
  absl::MutexLock lock(&mutex_);
  if (ended_.empty()) ended_ = std::string(why);
}

std::string OpenQuestion::WhyMissing(const Node& node) const {
  if (!ended_.empty()) return ended_;
  if (node.was_told && deadline_.Expired()) {
    return node.is_next ? "its launcher did not answer in time"
                        : "its launcher still answers who asked before: ask again, or with a "
                          "longer --wait";
  }
  if (node.was_told) return "";
  if (!node.asked.listens && unheard_.Expired()) {
    return "its launcher asks for no questions: it is of an earlier version of tutti, or reaches "
           "the service by the shared folder alone";
  }
  if (deadline_.Expired()) return "nothing was heard of its launcher in time";
  return "";
}

std::optional<QuestionAnswer> OpenQuestion::Answer(base::Deadline& again) {
  absl::MutexLock lock(&mutex_);
  QuestionAnswer answer;
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
  answer.sent = sent_;
  answered_ = true;
  return answer;
}

}  // namespace tutti::service
