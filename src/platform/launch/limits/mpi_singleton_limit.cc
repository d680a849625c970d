#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "platform/launch/limits/limits.h"
#include "platform/launch/mpi/open_mpi.h"
#include "platform/launch/mpi/singleton_watch.h"
#include "platform/launch/node/rank_failure.h"

namespace tutti::launch {
namespace {

// Rather than n singletons, which each do the whole of the work.
class MpiSingletonLimit : public Limit {
 public:
  explicit MpiSingletonLimit(const LimitContext& context)
      : plan_(context.plan),
        facts_(context.facts),
        ranks_(context.ranks),
        watch_(base::SteadyNow()) {}

  absl::Duration UntilNextLook(bool ending) const override {
    return ending ? absl::InfiniteDuration() : next_.Remaining();
  }

  std::optional<StopOrder> Look() override {
    const std::optional<MpiSingleton> found = watch_.Look(ranks_->Running());
    next_ = base::Deadline::After(watch_.interval());
    if (!found) return std::nullopt;
    const std::string what = WhatItDid(*found);
    constexpr auto kCode = absl::StatusCode::kFailedPrecondition;
    return StopOrder{found->rank < 0 ? absl::Status(kCode, absl::StrCat("a rank ", what))
                                     : RankFailure(kCode, found->rank, what),
                     std::nullopt};
  }

 private:
  std::string WhatItDid(const MpiSingleton& found) const {
    return absl::StrCat("has loaded Open MPI (", found.library,
                        ") and would be a world of its own: ",
                        WhyNoOpenMpi(plan_, EnvironmentOf(plan_, 0, facts_)), "; or, if its ranks ",
                        "need no MPI world, environment_variables: {", kMpiVariable, ": direct}");
  }

  const spec::LaunchPlan& plan_;
  const NodeFacts& facts_;
  RankTable* const ranks_;
  SingletonWatch watch_;
  base::Deadline next_ = base::Deadline::After(watch_.interval());
};

}  // namespace

std::unique_ptr<Limit> MakeMpiSingletonLimit(const LimitContext& context) {
  return std::make_unique<MpiSingletonLimit>(context);
}

}  // namespace tutti::launch
