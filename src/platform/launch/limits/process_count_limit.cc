#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/deadline.h"
#include "base/process/child_process.h"
#include "platform/launch/limits/limits.h"
#include "platform/launch/process/own_children.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBetweenCounts = absl::Milliseconds(200);
constexpr int kShareOfTime = 20;  // a count takes at most this part of the time

class ProcessCountLimit : public Limit {
 public:
  ProcessCountLimit(const spec::LaunchPlan& plan, int most) : plan_(plan), most_(most) {}

  absl::Duration UntilNextLook(bool /*ending*/) const override { return next_.Remaining(); }

  std::optional<StopOrder> Look() override {
    const absl::Duration began = base::SteadyNow();
    size_t count = Count();
    // Processes that end and begin while they are counted may count twice.
    if (count > static_cast<size_t>(most_)) count = std::min(count, Count());
    next_ =
        base::Deadline::After(std::max(kBetweenCounts, kShareOfTime * (base::SteadyNow() - began)));
    if (count <= static_cast<size_t>(most_)) return std::nullopt;
    return StopOrder{absl::ResourceExhaustedError(
                         absl::StrCat("its processes on node ", plan_.node().name, " have become ",
                                      count, ", more than the ", most_, " that a node may have")),
                     absl::ZeroDuration()};
  }

 private:
  static size_t Count() { return WithoutOwnChildren(base::Descendants(::getpid())).size(); }

  const spec::LaunchPlan& plan_;
  const int most_;
  base::Deadline next_ = base::Deadline::After(kBetweenCounts);  // not while ranks begin
};

}  // namespace

std::unique_ptr<Limit> MakeProcessCountLimit(const LimitContext& context) {
  return std::make_unique<ProcessCountLimit>(context.plan, context.most_processes);
}

}  // namespace tutti::launch
