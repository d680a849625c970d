// TensorPipe takes tensors one way between two neighbouring stages, while both compute: a pair of
// ranks with a thread of its own at each end.
//
// A message says its own shape, type and memory order, so that the last batch of an epoch may be
// short and no stage has to know another's layers. The receiving end takes one message ahead of the
// one that is asked for, no more: who sends faster waits, and activations do not pile up. The
// threads ask for short time slices, since at each part of a message they wait for a core on which
// a stage computes.
// Thread-compatible.
#pragma once

#include <torch/types.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/deadline.h"
#include "runtime/comm/stream.h"

namespace tutti::parallel {

// Returns an error about a rank of a smaller group as one about whole[rank], the same one's number
// in the whole group; others as they are.
absl::Status Renumbered(const absl::Status& status, const std::vector<int>& whole);

class TensorPipe {
 public:
  // `pair` is a group of two, of which rank `from` sends; errors tell of a rank by its number in
  // `whole`, of each of the two.
  TensorPipe(std::unique_ptr<comm::Communicator> pair, int from, std::vector<int> whole);

  // Queues a tensor, which nobody changes from now on; it is kept alive until it is sent. At most
  // eight dimensions, of any type and device.
  void Send(const torch::Tensor& tensor, base::Deadline deadline);
  // Waits until all have been sent.
  absl::Status Flush();

  // Says that so many more messages will be asked for, and begins to take the first of them.
  void Expect(int64_t messages, base::Deadline deadline);
  // Waits for the next one; begins to take the one behind it. On the CPU.
  absl::StatusOr<torch::Tensor> Receive();

 private:
  struct Arrival {
    comm::Stream::Ticket ticket;
    std::shared_ptr<torch::Tensor> tensor;
  };
  void TakeOne();

  const int from_;
  const std::vector<int> whole_;
  int64_t expected_ = 0;
  base::Deadline deadline_ = base::Deadline::After(absl::ZeroDuration());
  std::deque<Arrival> arrivals_;
  comm::Stream::Ticket sent_ = 0;
  comm::Stream stream_;
};

}  // namespace tutti::parallel
