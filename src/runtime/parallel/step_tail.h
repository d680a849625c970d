// StepTail is what ranks tell each other behind the gradients of a step's first bucket, at no
// further message:
//
//   | buffers / world size | loss, correct, stop of rank 0 | of rank 1 | ...
//
// Each rank fills its own slot and leaves the others zero; the bucket's sum over the ranks is then
// the mean of the buffers and everybody's say. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "runtime/parallel/strategy.h"

namespace tutti::parallel {

struct RankSummary {
  double loss = 0;  // sum over the rank's part
  int64_t correct = 0;
  bool stop = false;
};

// How much of it there is. Two numbers in a row: they are summed over the ranks as they lie.
struct MiniBatch {
  int64_t images = 0;
  int64_t units = 0;  // of the task
  // Returns what the sum of the losses is divided by; a mini-batch without any unit has no loss.
  double divisor() const { return static_cast<double>(std::max<int64_t>(units, 1)); }
};

class StepTail {
 public:
  // Errors call the first rank by `first_rank`, and so on.
  StepTail(int64_t buffer_elements, int world_size, int first_rank = 0)
      : buffer_elements_(buffer_elements), world_size_(world_size), first_rank_(first_rank) {}

  int64_t size() const { return buffer_elements_ + kPerRank * world_size_; }

  // Called before the all-reduce. `tail` [size()], `buffers` [buffer_elements].
  void Fill(const torch::Tensor& tail, const torch::Tensor& buffers, int rank,
            const RankSummary& own) const;
  // Writes the same in two, where the tail lies on a GPU, which is not waited for: first what
  // backward knows, of one element each.
  void Write(const torch::Tensor& tail, int rank, const torch::Tensor& loss,
             const torch::Tensor& correct) const;
  void Share(const torch::Tensor& tail, const torch::Tensor& buffers, int rank, bool stop) const;

  // Called after it. Returns what all ranks say, [3 * world size], anywhere.
  torch::Tensor Summaries(const torch::Tensor& tail) const {
    return tail.narrow(0, buffer_elements_, kPerRank * world_size_);
  }
  // Reads the same on the CPU, as a step's result. OutOfRange names the rank whose loss is not
  // finite.
  absl::Status Read(const torch::Tensor& summaries, const MiniBatch& whole,
                    StepResult& result) const;
  torch::Tensor MeanBuffers(const torch::Tensor& tail) const {
    return tail.narrow(0, 0, buffer_elements_);
  }

 private:
  static constexpr int64_t kPerRank = 3;
  static RankSummary Of(const torch::Tensor& summaries, int rank);
  int64_t buffer_elements_;
  int world_size_;
  int first_rank_;
};

}  // namespace tutti::parallel
