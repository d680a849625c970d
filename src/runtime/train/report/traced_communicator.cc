#include "runtime/train/report/traced_communicator.h"

#include <numeric>
#include <utility>

#include "base/deadline.h"
#include "base/status.h"

namespace tutti::train {
namespace {

using base::Deadline;
using comm::DataType;
using comm::ReduceOp;

// What goes before the tensors of a mailbox's message is smaller.
constexpr size_t kLeastOfMailbox = 1024;

size_t SumOfCounts(std::span<const size_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), size_t{0});
}

class TracedCommunicator final : public comm::Communicator {
 public:
  // Messages of fewer bytes are not put down.
  TracedCommunicator(std::unique_ptr<comm::Communicator> group, std::shared_ptr<Trace> trace,
                     size_t least_message)
      : group_(std::move(group)), trace_(std::move(trace)), least_message_(least_message) {}

  int rank() const override { return group_->rank(); }
  int size() const override { return group_->size(); }
  comm::Placement placement() const override { return group_->placement(); }
  comm::Control* control() override { return group_->control(); }

  absl::Status AllReduce(void* data, size_t count, DataType type, ReduceOp op,
                         Deadline deadline) override {
    return Timed(SpanKind::kAllReduce, count * comm::SizeOf(type),
                 [&] { return group_->AllReduce(data, count, type, op, deadline); });
  }
  absl::Status ReduceScatter(const void* input, std::span<const size_t> counts, void* output,
                             DataType type, ReduceOp op, Deadline deadline) override {
    return Timed(SpanKind::kReduceScatter, SumOfCounts(counts) * comm::SizeOf(type),
                 [&] { return group_->ReduceScatter(input, counts, output, type, op, deadline); });
  }
  absl::Status Broadcast(void* data, size_t bytes, int root, Deadline deadline) override {
    return Timed(SpanKind::kBroadcast, bytes,
                 [&] { return group_->Broadcast(data, bytes, root, deadline); });
  }
  absl::Status AllGather(const void* input, size_t bytes, void* output,
                         Deadline deadline) override {
    return Timed(SpanKind::kAllGather, bytes * static_cast<size_t>(size()),
                 [&] { return group_->AllGather(input, bytes, output, deadline); });
  }
  absl::Status AllGatherV(const void* input, std::span<const size_t> bytes, void* output,
                          Deadline deadline) override {
    return Timed(SpanKind::kAllGather, SumOfCounts(bytes),
                 [&] { return group_->AllGatherV(input, bytes, output, deadline); });
  }
  absl::Status AllToAllV(const void* input, std::span<const size_t> send_bytes, void* output,
                         std::span<const size_t> receive_bytes, Deadline deadline) override {
    return Timed(SpanKind::kAllToAll, SumOfCounts(send_bytes), [&] {
      return group_->AllToAllV(input, send_bytes, output, receive_bytes, deadline);
    });
  }
  absl::Status Barrier(Deadline deadline) override {
    return Timed(SpanKind::kBarrier, 0, [&] { return group_->Barrier(deadline); });
  }
  absl::Status Send(const void* data, size_t bytes, int to, Deadline deadline) override {
    if (bytes < least_message_) return group_->Send(data, bytes, to, deadline);
    return Timed(SpanKind::kSend, bytes, [&] { return group_->Send(data, bytes, to, deadline); });
  }
  absl::Status Receive(void* data, size_t bytes, int from, Deadline deadline) override {
    if (bytes < least_message_) return group_->Receive(data, bytes, from, deadline);
    return Timed(SpanKind::kReceive, bytes,
                 [&] { return group_->Receive(data, bytes, from, deadline); });
  }
  absl::StatusOr<std::unique_ptr<comm::Communicator>> NewGroup(std::span<const int> ranks,
                                                               Deadline deadline) override {
    TUTTI_ASSIGN_OR_RETURN(auto group, group_->NewGroup(ranks, deadline));
    return std::make_unique<TracedCommunicator>(std::move(group), trace_, kLeastOfMailbox);
  }
  absl::StatusOr<std::unique_ptr<comm::SharedBuffer>> AllocateShared(size_t bytes) override {
    return group_->AllocateShared(bytes);
  }

 private:
  template <typename Collective>
  absl::Status Timed(SpanKind kind, size_t bytes, Collective collective) {
    const absl::Duration begin = base::SteadyNow();
    absl::Status status = collective();
    const absl::Duration end = base::SteadyNow();
    trace_->Add(kind, absl::ToDoubleSeconds(end - begin), end, static_cast<int64_t>(bytes));
    return status;
  }

  const std::unique_ptr<comm::Communicator> group_;
  const std::shared_ptr<Trace> trace_;
  const size_t least_message_;
};

}  // namespace

std::unique_ptr<comm::Communicator> Traced(std::unique_ptr<comm::Communicator> group,
                                           std::shared_ptr<Trace> trace) {
  return std::make_unique<TracedCommunicator>(std::move(group), std::move(trace),
                                              /*least_message=*/0);
}

}  // namespace tutti::train
