// GpuInput brings batches to a GPU while it computes: two slots there, a stream of its own for the
// copies.
//
//   copies    | batch 1 | batch 2 |      | batch 3 |
//   compute        | step 1 ...........| step 2 ...........|
//
// A step reads its batch from the same memory every time (batch()), so that it can be recorded; the
// copy there from the slot is the first thing that it does. Thread-compatible.
#pragma once

#include <c10/core/Event.h>
#include <torch/types.h>

#include <array>

#include "absl/status/status.h"
#include "base/deadline.h"
#include "runtime/parallel/strategy.h"

namespace tutti::parallel {

// Waits until the GPU has come to `event`. DeadlineExceeded names `what`.
absl::Status WaitFor(c10::Event& event, const char* what, base::Deadline deadline);

class GpuInput {
 public:
  explicit GpuInput(torch::Device device);

  // Begins to copy a batch; what is put on the current stream from now on sees it. Copies from
  // page-locked memory do not wait for anything. True: its sizes or types are new, and so are the
  // tensors of batch().
  bool Begin(const Batch& batch);
  // When it has come the last batch's own memory may be used again.
  c10::Event& taken() { return slots_[1 - next_].arrived; }

  const Batch& batch() const { return batch_; }

 private:
  struct Slot {
    Batch batch;
    c10::Event arrived{c10::DeviceType::CUDA}, free{c10::DeviceType::CUDA};
  };
  bool Fits(const Batch& batch) const;

  const torch::Device device_;
  const c10::Stream copies_;
  std::array<Slot, 2> slots_;
  size_t next_ = 0;
  Batch batch_;
};

}  // namespace tutti::parallel
