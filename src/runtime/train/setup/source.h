// Source gives a rank its part of each mini-batch, as tensors: what the training loop, evaluation
// and planners know of the data. Thread-compatible.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/data/loader.h"
#include "runtime/parallel/strategy.h"

namespace tutti::train {

class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t steps_per_epoch() const = 0;
  // Asks for the batch of a step of the run, which Next gives when its turn comes: where the
  // strategy says which ones this rank takes (Strategy::hands_out).
  virtual void Want(int64_t step) = 0;
  // Returns the next batch, without inputs where the rank reads none; it runs on into the next
  // epoch by itself. Its memory is valid until the next call.
  virtual absl::StatusOr<parallel::Batch> Next(base::Deadline deadline) = 0;
  // Returns as many samples as Next would give them, of any content, and without targets: to
  // measure with.
  virtual parallel::Batch Like(int64_t samples) const = 0;
  // Counts the samples that could not be read, and in whose place others came.
  virtual int64_t unreadable() const = 0;

  // Returns where it stands, as a part of the run's state ("sampler.position"), up to date after
  // Next. What was written to it holds from Seek on.
  virtual parallel::State state() = 0;
  // FailedPrecondition: there is no such place.
  virtual absl::Status Seek() = 0;
  // Stands after so many steps of the run: what Seek goes by unless the state says more.
  virtual void SetPosition(int64_t step) = 0;
};

// Makes what the task's loss compares outputs with, of a batch.
using TargetsOf = std::function<torch::Tensor(const data::Batch& batch)>;

struct ImageSourceOptions {
  data::Augmentation augmentation;  // tells the images' size
  bool bf16 = false;
  TargetsOf targets;
  std::string remark;  // behind an error about what cannot be read
};

// Makes the source of images [n, 3, H, W], channels-last, in fp32 or bf16. `loader` outlives it.
std::unique_ptr<Source> MakeImageSource(data::Loader& loader, ImageSourceOptions options);

}  // namespace tutti::train
