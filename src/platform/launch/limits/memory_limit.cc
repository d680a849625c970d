#include <signal.h>

#include "base/deadline.h"
#include "platform/launch/environment/slurm_placement.h"
#include "platform/launch/limits/limits.h"
#include "platform/launch/node/memory_watch.h"

namespace tutti::launch {
namespace {

class MemoryLimit : public Limit {
 public:
  MemoryLimit(int64_t share, RankTable* ranks)
      : watch_(share),
        ranks_(ranks),
        next_(base::Deadline::After(watch_.interval())) {}  // not while ranks begin

  absl::Duration UntilNextLook(bool /*ending*/) const override { return next_.Remaining(); }

  std::optional<StopOrder> Look() override {
    if (const std::optional<MemoryBreach> breach = watch_.Look(ranks_->Running())) Kill(*breach);
    next_ = base::Deadline::After(watch_.interval());
    return std::nullopt;
  }

 private:
  void Kill(const MemoryBreach& breach) const {
    RankProcess* const rank = ranks_->Find(breach.rank);
    if (rank != nullptr && !rank->ended()) rank->KilledForMemory(breach.reason);
    for (const pid_t pid : breach.processes) ::kill(pid, SIGKILL);
  }

  MemoryWatch watch_;
  RankTable* const ranks_;
  base::Deadline next_;
};

}  // namespace

int64_t MemoryShareOf(const LimitContext& context) {
  const spec::LaunchPlan& plan = context.plan;
  if (plan.memory_bytes > 0 || plan.environment.image.empty()) return plan.memory_bytes;
  return AllocatedMemory(context.facts.own);
}

std::unique_ptr<Limit> MakeMemoryLimit(const LimitContext& context) {
  return std::make_unique<MemoryLimit>(MemoryShareOf(context), context.ranks);
}

}  // namespace tutti::launch
