#include "platform/service/allocation/plan_turns.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"

namespace tutti::service {
namespace {

bool SharesAMount(const std::set<std::string>& some, const std::set<std::string>& others) {
  return std::any_of(some.begin(), some.end(),
                     [&](const std::string& mount) { return others.contains(mount); });
}

}  // namespace

void PlanTurns::Do(const PlanPlace& place, std::function<void()> run) {
  if (place.mounts.empty()) return work_->Do(place.queue, std::move(run));
  std::vector<Plan> next;
  {
    absl::MutexLock lock(&mutex_);
    Plan plan{place, std::move(run), ++count_};
    const auto waiting = waiting_.find(place.queue);
    if (waiting != waiting_.end()) {
      waiting->second.push_back(std::move(plan));
    } else if (HasRoom(place, IsBehindAnyWaiting(place))) {
      NoteAtHand(place);
      next.push_back(std::move(plan));
    } else {
      waiting_[place.queue].push_back(std::move(plan));
    }
  }
  HandOn(std::move(next));
}

// One whose queue has a plan at hand takes no other thread. Those that read from several leave one
// of each mount's to those that read from it alone: what holds them may be another's server. Those
// behind such a one let their queues run dry, and take no more than leave room for it, but for one
// of a mount: what else is at hand there may be another's server, which never answers.
bool PlanTurns::HasRoom(const PlanPlace& place, bool is_behind) const {
  const bool reads_from_several = place.mounts.size() > 1;
  const bool yields = is_behind && !reads_from_several;
  if (plans_.contains(place.queue)) return !yields;
  const int most = reads_from_several ? kPlanQueues - 1 : kPlanQueues;
  return std::all_of(place.mounts.begin(), place.mounts.end(), [&](const std::string& mount) {
    const auto found = at_hand_.find(mount);
    if (found == at_hand_.end()) return true;
    const auto& [queues, alone] = found->second;
    return queues < most && (!yields || queues < kPlanQueues - 2 || alone == 0);
  });
}

bool PlanTurns::IsBehindAnyWaiting(const PlanPlace& place) const {
  return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& queue) {
    const std::set<std::string>& mounts = queue.second.front().place.mounts;
    return mounts.size() > 1 && SharesAMount(place.mounts, mounts);
  });
}

void PlanTurns::NoteAtHand(const PlanPlace& place) {
  if (plans_[place.queue]++ > 0) return;
  for (const std::string& mount : place.mounts) {
    AtHand& at_hand = at_hand_[mount];
    ++at_hand.queues;
    at_hand.alone += place.mounts.size() == 1 ? 1 : 0;
  }
}

std::vector<PlanTurns::Plan> PlanTurns::TakeThoseWithRoom() {
  std::set<std::pair<int64_t, std::string>> firsts;  // of each queue, by number
  for (const auto& [queue, plans] : waiting_) firsts.insert({plans.front().number, queue});
  std::vector<Plan> taken;
  std::set<std::string> awaited;  // mounts, by those of several that stay
  while (!firsts.empty()) {
    const std::string queue = firsts.extract(firsts.begin()).value().second;
    const auto waiting = waiting_.find(queue);
    Plan& plan = waiting->second.front();
    if (!HasRoom(plan.place, SharesAMount(plan.place.mounts, awaited))) {
      if (plan.place.mounts.size() > 1) {
        awaited.insert(plan.place.mounts.begin(), plan.place.mounts.end());
      }
      continue;
    }
    NoteAtHand(plan.place);
    taken.push_back(std::move(plan));
    waiting->second.pop_front();
    if (waiting->second.empty()) {
      waiting_.erase(waiting);
    } else {
      firsts.insert({waiting->second.front().number, queue});
    }
  }
  return taken;
}

void PlanTurns::HandOn(std::vector<Plan> plans) {
  for (Plan& plan : plans) {
    const std::string queue = plan.place.queue;
    work_->Do(queue, [this, plan = std::move(plan)] {
      const absl::Cleanup end = [&] { End(plan.place); };
      plan.run();
    });
  }
}

void PlanTurns::End(const PlanPlace& place) {
  std::vector<Plan> next;
  {
    absl::MutexLock lock(&mutex_);
    const auto plans = plans_.find(place.queue);
    if (--plans->second > 0) return;
    plans_.erase(plans);
    for (const std::string& mount : place.mounts) {
      const auto at_hand = at_hand_.find(mount);
      at_hand->second.alone -= place.mounts.size() == 1 ? 1 : 0;
      if (--at_hand->second.queues == 0) at_hand_.erase(at_hand);
    }
    next = TakeThoseWithRoom();
  }
  HandOn(std::move(next));
}

}  // namespace tutti::service
