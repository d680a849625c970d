#include "runtime/parallel/step_tail.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace tutti::parallel {

void StepTail::Fill(torch::Tensor tail, const torch::Tensor& buffers, int rank,
                    const RankSays& own) const {
  torch::NoGradGuard no_grad;
  tail.zero_();
  MeanBuffers(tail).copy_(buffers).div_(world_size_);
  const auto slot = torch::tensor(
      {own.loss, static_cast<double>(own.correct), own.stop ? 1.0 : 0.0}, torch::kFloat64);
  tail.narrow(0, buffer_elements_ + kPerRank * rank, kPerRank).copy_(slot);
}

RankSays StepTail::Of(const torch::Tensor& tail, int rank) const {
  const torch::Tensor slot =
      tail.narrow(0, buffer_elements_ + kPerRank * rank, kPerRank).to(torch::kFloat64);
  const double* values = slot.const_data_ptr<double>();
  return {values[0], std::llround(values[1]), values[2] != 0};
}

absl::Status StepTail::Read(const torch::Tensor& tail, const MiniBatch& whole,
                            StepResult& result) const {
  for (int rank = 0; rank < world_size_; ++rank) {
    const RankSays said = Of(tail, rank);
    if (!std::isfinite(said.loss)) {
      return absl::OutOfRangeError(absl::StrCat("the loss of rank ", rank, " is ", said.loss));
    }
    result.loss += said.loss / whole.divisor();
    result.correct += said.correct;
    result.stop |= said.stop;
  }
  result.count = whole.pictures;
  return absl::OkStatus();
}

}  // namespace tutti::parallel
