#include "runtime/train/setup/resolve.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "runtime/train/setup/former_run.h"
#include "runtime/train/setup/precision.h"
#include "runtime/train/setup/prepare_machine.h"

namespace tutti::train {

absl::StatusOr<Resolved> Resolve(const Recipe& asked, const parallel::Layout& layout,
                                 torch::Device device, comm::Communicator& group) {
  Resolved resolved;
  Recipe& recipe = resolved.recipe = ForRanks(asked, layout.replicas());
  PrepareMachine(recipe.threads, device.is_cuda());
  TakenBefore before = layout.reports() ? TakenToResume(recipe) : TakenBefore{};
  const auto deadline = base::Deadline::After(absl::Seconds(recipe.step_timeout));
  TUTTI_ASSIGN_OR_RETURN(PrecisionTaken taken, TakePrecision(recipe.precision, before.precision,
                                                             device, group, deadline));
  recipe.precision = taken.precision;
  // Products that were taken in another precision say nothing of this one's.
  const std::optional<bool> kept =
      before.precision == taken.precision ? before.winograd : std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(recipe.winograd, TakeWinograd(recipe, kept, group, deadline));
  resolved.precision_reason = std::move(taken.why);
  resolved.former_cut = std::move(before.cut);
  return resolved;
}

}  // namespace tutti::train
