#include "runtime/parallel/pipeline/stages.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/lost_rank.h"

namespace tutti::parallel {
namespace {

// How long a rank that misses a neighbour waits to hear from the whole group who was lost.
constexpr absl::Duration kForTheReason = absl::Seconds(10);

}  // namespace

absl::Status CheckCut(models::ModelImpl& whole, const Layout& layout, const Cut& cut) {
  const size_t layers = whole.Layers().size();
  if (layers == 0) {
    return absl::InvalidArgumentError("the model has no layers that it could be cut between");
  }
  const bool fits = static_cast<int>(cut.size()) == layout.stages() && cut.front() == 0 &&
                    cut.back() < layers &&
                    std::adjacent_find(cut.begin(), cut.end(), std::greater_equal<>()) == cut.end();
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a cut of ", layers, " layers does not make ", layout.stages(), " stages"));
}

absl::StatusOr<models::Model> TakeStage(models::Model whole, const Layout& layout, const Cut& cut) {
  TUTTI_RETURN_IF_ERROR(CheckCut(*whole, layout, cut));
  std::vector<models::Layer> layers = std::exchange(whole, nullptr)->Layers();
  const auto stage = static_cast<size_t>(layout.stage());
  const size_t end = layout.has_outputs() ? layers.size() : cut[stage + 1];
  models::Model own = models::MakeStage(
      {std::make_move_iterator(layers.begin() + static_cast<ptrdiff_t>(cut[stage])),
       std::make_move_iterator(layers.begin() + static_cast<ptrdiff_t>(end))});
  const std::vector<torch::Tensor> parameters = own->parameters();
  if (std::any_of(parameters.begin(), parameters.end(),
                  [](const torch::Tensor& each) { return each.requires_grad(); })) {
    return own;
  }
  return absl::InvalidArgumentError(absl::StrCat("stage ", stage, " has no parameters to train"));
}

absl::Status CheckOneInput(const Layout& layout, const std::vector<torch::Tensor>& inputs) {
  if (!layout.reads_inputs() || inputs.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a pipeline takes one input a sample, not ", inputs.size()));
}

absl::StatusOr<torch::Tensor> PredictByStages(
    const std::vector<torch::Tensor>& inputs, Mailbox* before, Mailbox* after,
    const std::function<torch::Tensor(const torch::Tensor&)>& forward, base::Deadline deadline) {
  torch::NoGradGuard no_grad;
  Message received;
  if (before != nullptr) {
    before->Expect(1, deadline);
    TUTTI_ASSIGN_OR_RETURN(received, before->Receive());
  }
  torch::Tensor output = forward(before == nullptr ? inputs.at(0) : received.at(0));
  if (after == nullptr) return output.cpu();
  TUTTI_RETURN_IF_ERROR(after->Flush());
  TUTTI_RETURN_IF_ERROR(after->Send({output}, deadline));
  return torch::Tensor();
}

absl::Status ByStage(const absl::Status& status, const Layout& layout, comm::Stream& ranks) {
  if (!comm::LostRank(status)) return status;
  const absl::Status whole = ranks.Run([](comm::Communicator& group) {
    return group.Barrier(base::Deadline::After(kForTheReason));
  });
  const absl::Status& said = comm::LostRank(whole) ? whole : status;
  const int stage = layout.IndexOf(kStageAxis, comm::LostRank(said).value());
  return base::Annotate(said, absl::StrCat("stage ", stage, " of ", layout.stages()));
}

}  // namespace tutti::parallel
