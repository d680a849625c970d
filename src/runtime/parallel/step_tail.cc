#include "runtime/parallel/step_tail.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace tutti::parallel {

void StepTail::Write(const torch::Tensor& tail, int rank, const torch::Tensor& loss,
                     const torch::Tensor& correct) const {
  torch::NoGradGuard no_grad;
  const torch::Tensor summaries = Summaries(tail).zero_();
  summaries.narrow(0, kPerRank * rank, 1).copy_(loss.reshape({1}));
  summaries.narrow(0, kPerRank * rank + 1, 1).copy_(correct.reshape({1}));
}

void StepTail::Share(const torch::Tensor& tail, const torch::Tensor& buffers, int rank,
                     bool stop) const {
  torch::NoGradGuard no_grad;
  MeanBuffers(tail).copy_(buffers).div_(world_size_);
  if (stop) Summaries(tail).narrow(0, kPerRank * rank + 2, 1).fill_(1);
}

void StepTail::Fill(const torch::Tensor& tail, const torch::Tensor& buffers, int rank,
                    const RankSummary& own) const {
  Write(tail, rank, torch::scalar_tensor(own.loss, torch::kFloat64),
        torch::scalar_tensor(own.correct, torch::kInt64));
  Share(tail, buffers, rank, own.stop);
}

RankSummary StepTail::Of(const torch::Tensor& summaries, int rank) {
  const torch::Tensor slot = summaries.narrow(0, kPerRank * rank, kPerRank).to(torch::kFloat64);
  const double* values = slot.const_data_ptr<double>();
  return {values[0], std::llround(values[1]), values[2] != 0};
}

absl::Status StepTail::Read(const torch::Tensor& summaries, const MiniBatch& whole,
                            StepResult& result) const {
  for (int rank = 0; rank < world_size_; ++rank) {
    const RankSummary said = Of(summaries, rank);
    if (!std::isfinite(said.loss)) {
      return absl::OutOfRangeError(
          absl::StrCat("the loss of rank ", first_rank_ + rank, " is ", said.loss));
    }
    result.loss += said.loss / whole.divisor();
    result.correct += said.correct;
    result.stop |= said.stop;
  }
  result.count = whole.images;
  return absl::OkStatus();
}

}  // namespace tutti::parallel
