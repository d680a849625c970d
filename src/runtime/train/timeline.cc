#include "runtime/train/timeline.h"

#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "runtime/train/gather_measurements.h"
#include "runtime/train/report/traced_communicator.h"

namespace tutti::train {
namespace {

// The spans of a rank's trace: a few hundred steps of a model with eight buckets, in half a
// megabyte.
constexpr size_t kTraceSpans = 1 << 14;

}  // namespace

Timeline::Timeline(std::filesystem::path trace)
    : path_(std::move(trace)),
      trace_(path_.empty() ? nullptr : std::make_shared<Trace>(kTraceSpans)) {}

std::unique_ptr<comm::Communicator> Timeline::Watch(
    std::unique_ptr<comm::Communicator> communicator) {
  return trace_ ? Traced(std::move(communicator), trace_) : std::move(communicator);
}

std::function<void(const parallel::Action&, double)> Timeline::WatchPasses() {
  if (!trace_) return nullptr;
  return [trace = trace_](const parallel::Action& action, double seconds) {
    const bool forward = action.pass == parallel::Pass::kForward;
    trace->Add(forward ? SpanKind::kForwardPass : SpanKind::kBackwardPass, seconds,
               base::SteadyNow(), action.micro_batch);
  };
}

absl::Status Timeline::Open() const {
  if (!trace_) return absl::OkStatus();
  const auto path = std::filesystem::absolute(path_);
  TUTTI_RETURN_IF_ERROR(base::MakeDirectories(path.parent_path()));
  return base::ReplaceFile(path, ChromeTrace({}));
}

absl::Status Timeline::Begin(parallel::Strategy& strategy, base::Deadline deadline) {
  if (trace_) {
    TUTTI_RETURN_IF_ERROR(BeginTogether(*trace_, strategy, deadline));
  }
  Lap();
  lapped_ = base::SteadyNow();
  return absl::OkStatus();
}

double Timeline::Lap() {
  const double seconds = timer_.Lap();
  lapped_ += absl::Seconds(seconds);
  return seconds;
}

double Timeline::Leave(SpanKind kind, int64_t step) {
  const double seconds = Lap();
  if (trace_) trace_->Add(kind, seconds, lapped_, step);
  return seconds;
}

void Timeline::AddStep(int64_t step, const StepParts& times) {
  if (trace_) trace_->AddStep(step, times, lapped_);
}

absl::Status Timeline::Write(parallel::Strategy& strategy, base::Deadline deadline) const {
  if (!trace_) return absl::OkStatus();
  TUTTI_ASSIGN_OR_RETURN(const auto ranks, GatherTrace(*trace_, strategy, deadline));
  return strategy.rank() == 0 ? base::ReplaceFile(path_, ChromeTrace(ranks)) : absl::OkStatus();
}

}  // namespace tutti::train
