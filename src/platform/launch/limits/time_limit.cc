#include "base/deadline.h"
#include "platform/launch/limits/limits.h"
#include "platform/launch/node/rank_failure.h"

namespace tutti::launch {
namespace {

class TimeLimit : public Limit {
 public:
  explicit TimeLimit(double seconds)
      : seconds_(seconds), deadline_(base::Deadline::After(absl::Seconds(seconds))) {}

  absl::Duration UntilNextLook(bool ending) const override {
    return ending ? absl::InfiniteDuration() : deadline_.Remaining();
  }
  std::optional<StopOrder> Look() override {
    return StopOrder{TimeLimitReached(seconds_), std::nullopt};
  }

 private:
  const double seconds_;
  const base::Deadline deadline_;
};

}  // namespace

std::unique_ptr<Limit> MakeTimeLimit(const LimitContext& context) {
  return std::make_unique<TimeLimit>(context.plan.timeout_seconds);
}

}  // namespace tutti::launch
