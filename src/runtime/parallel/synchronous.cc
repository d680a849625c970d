#include "runtime/parallel/synchronous.h"

#include <utility>

#include "base/status.h"
#include "runtime/models/state.h"
#include "runtime/parallel/catch_errors.h"
#include "runtime/parallel/collectives.h"
#include "runtime/parallel/lap.h"

namespace tutti::parallel {

Synchronous::Synchronous(Layout layout, models::Model model, const Flat& flat)
    : layout_(std::move(layout)),
      model_(std::move(model)),
      buffers_(FlattenBuffers(model_)),
      buckets_(FlattenParameters(model_, flat.bucket_bytes, buffers_.numel() + flat.told,
                                 flat.memory)) {}

void Synchronous::Finish(const OptimizerFactory& factory, double clip_norm) {
  if (factory) optimizer_ = factory(buckets_, model_);
  clip_norm_ = clip_norm;
}

State Synchronous::state() {
  State all = optimizer_ == nullptr ? State() : optimizer_->state();
  for (auto& [name, tensor] : models::StateOf(*model_)) all.push_back({name, tensor});
  for (StateTensor& each : all) {
    each.writes = each.common ? layout_.rank == 0 : layout_.replica() == 0;
  }
  return all;
}

// On a CPU all are begun before the first is waited for.
absl::Status Synchronous::Synchronize(base::Deadline deadline) {
  comm::Stream::Ticket of_all = 0, of_replicas = 0;
  for (const StateTensor& each : state()) {
    comm::Stream& group = each.common ? ranks() : replicas();
    if (each.tensor.is_cpu()) {
      (each.common ? of_all : of_replicas) = group.Issue(BroadcastOf(each.tensor, deadline));
    } else {
      TUTTI_RETURN_IF_ERROR(BroadcastOver(group, each.tensor, deadline));
    }
  }
  TUTTI_RETURN_IF_ERROR(replicas().Wait(of_replicas));
  return ranks().Wait(of_all);
}

absl::StatusOr<StepResult> Synchronous::Step(const Batch& batch, double learning_rate,
                                             base::Deadline deadline) {
  deadline_ = deadline;
  auto result = CatchErrors<StepResult>(ranks(), [&]() -> absl::StatusOr<StepResult> {
    TUTTI_ASSIGN_OR_RETURN(StepResult result, Gradients(batch));
    if (optimizer_ == nullptr) return result;
    LapTimer timer;
    if (clip_norm_ > 0) ScaleToNorm(buckets_, Squares(), clip_norm_);
    optimizer_->Step(learning_rate);
    result.times.update = timer.Lap();
    return result;
  });
  return result.ok() ? result : Explained(result.status());
}

void Synchronous::SwapWeights() {
  if (optimizer_ != nullptr) optimizer_->SwapWeights();
}

}  // namespace tutti::parallel
