#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "platform/launch/limits/limits.h"
#include "platform/launch/mpi/pmi_failure_watch.h"
#include "platform/launch/node/rank_failure.h"

namespace tutti::launch {
namespace {

class MpiWorldLimit : public Limit {
 public:
  explicit MpiWorldLimit(const LimitContext& context) : pmi_(context.pmi), ranks_(context.ranks) {}

  absl::Duration UntilNextLook(bool ending) const override {
    if (ending) return absl::InfiniteDuration();
    const std::optional<PmiFailure> failure = pmi_->failure();
    return failure && failure->abort_code ? absl::ZeroDuration() : next_.Remaining();
  }

  std::optional<StopOrder> Look() override {
    next_ = base::Deadline::After(PmiFailureWatch::kInterval);
    const std::optional<MpiFailure> failure = watch_.Look(pmi_->failure(), base::SteadyNow());
    if (!failure) return std::nullopt;
    ranks_->ReportMpiFailure(*failure);
    return StopOrder{RankFailure(absl::StatusCode::kInternal, failure->rank, failure->error),
                     std::nullopt};
  }

 private:
  const PmiServer* const pmi_;
  RankTable* const ranks_;
  PmiFailureWatch watch_;
  base::Deadline next_ = base::Deadline::After(PmiFailureWatch::kInterval);
};

}  // namespace

std::unique_ptr<Limit> MakeMpiWorldLimit(const LimitContext& context) {
  return std::make_unique<MpiWorldLimit>(context);
}

}  // namespace tutti::launch
