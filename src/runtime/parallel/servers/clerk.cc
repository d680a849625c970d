#include "runtime/parallel/servers/clerk.h"

#include <algorithm>
#include <utility>

namespace tutti::parallel {

Clerk::Clerk(int workers, int64_t staleness)
    : staleness_(staleness), workers_(static_cast<size_t>(workers)) {}

void Clerk::Begin(int64_t step, int64_t end) {
  version_ = next_ = step;
  end_ = end;
  over_ = 0;
  std::fill(workers_.begin(), workers_.end(), Worker());
}

void Clerk::Stop() { end_ = next_; }

void Clerk::Ready(int worker) { ready_.push_back(worker); }

void Clerk::HandOut(int worker) {
  if (next_ == end_) return;
  ++At(worker).told;
  At(worker).to_tell.push_back(next_++);
}

int64_t Clerk::computing() const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [](const Worker& each) { return each.version.has_value(); });
}

bool Clerk::MayBegin() const {
  const int64_t others = computing();
  return others <= staleness_ &&
         std::all_of(workers_.begin(), workers_.end(), [&](const Worker& each) {
           return !each.version || version_ - *each.version + others <= staleness_;
         });
}

// All workers but those for which nothing is left, in the order of their ranks, so that what each
// is told does not depend on who was first.
void Clerk::FormRound() {
  const bool all_are_there =
      computing() == 0 && ready_.size() + static_cast<size_t>(over_) == workers_.size();
  if (!round_.empty() || !all_are_there) return;
  round_ = std::exchange(ready_, {});
  std::sort(round_.begin(), round_.end());
  for (const int worker : round_) {
    if (At(worker).told == 0) HandOut(worker);
  }
  for (const int worker : round_) HandOut(worker);
}

std::optional<Clerk::Grant> Clerk::NextGrant() {
  const bool in_rounds = staleness_ == 0;
  if (in_rounds) FormRound();
  std::deque<int>& waiting = in_rounds ? round_ : ready_;
  if (waiting.empty()) return std::nullopt;
  const int rank = waiting.front();
  Worker& worker = At(rank);
  if (!in_rounds) {
    const bool is_left = worker.told > 0 || next_ < end_;
    if (is_left && !MayBegin()) return std::nullopt;
    while (worker.told < kTold && next_ < end_) HandOut(rank);
  }
  waiting.pop_front();
  Grant grant{rank, worker.told > 0, std::exchange(worker.to_tell, {})};
  if (grant.begins) {
    --worker.told;
    worker.version = version_;
  } else {
    ++over_;
  }
  return grant;
}

std::vector<Clerk::Gradient> Clerk::Came(int worker) {
  if (staleness_ > 0) {
    const int64_t late = version_ - *std::exchange(At(worker).version, std::nullopt);
    ++version_;
    return {{worker, late}};
  }
  At(worker).has_come = true;
  std::vector<Gradient> all;
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (!workers_[i].version) continue;
    if (!workers_[i].has_come) return {};
    all.push_back({static_cast<int>(i), 0});
  }
  for (const Gradient& each : all) {
    At(each.worker).version.reset();
    At(each.worker).has_come = false;
  }
  version_ += static_cast<int64_t>(all.size());
  return all;
}

}  // namespace tutti::parallel
