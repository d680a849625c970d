#include "runtime/parallel/pipeline/tensor_pipe.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/lost_rank.h"

namespace tutti::parallel {
namespace {

constexpr size_t kMostDimensions = 8;

// struct sched_attr of sched_setattr(2), version 0, which glibc 2.36 does not declare.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = 0;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0, deadline = 0, period = 0;  // ns
};
static_assert(sizeof(SchedulingAttributes) == 48);

// The scheduler prefers a thread that asks for less at a time when it wakes (EEVDF, Linux 6.12);
// its share of the processors stays what it was. Where the system knows or allows no slices,
// messages are slower and no more.
void AskForShortSlices() {
  constexpr uint64_t kSlice = 100'000;  // ns
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  attributes.runtime = kSlice;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// What goes before the elements.
struct MessageHead {
  int64_t type = 0, dimensions = 0;
  int64_t channels_last = 0;
  std::array<int64_t, kMostDimensions> sizes = {};
};

torch::MemoryFormat FormatOf(const MessageHead& head) {
  return head.channels_last != 0 ? torch::MemoryFormat::ChannelsLast
                                 : torch::MemoryFormat::Contiguous;
}

MessageHead HeadOf(const torch::Tensor& tensor) {
  MessageHead head;
  head.type = static_cast<int64_t>(tensor.scalar_type());
  head.dimensions = tensor.dim();
  head.channels_last = tensor.suggest_memory_format() == torch::MemoryFormat::ChannelsLast ? 1 : 0;
  std::copy_n(tensor.sizes().begin(), tensor.dim(), head.sizes.begin());
  return head;
}

// From another rank of the same program, and yet not to be trusted to be whole.
absl::StatusOr<torch::Tensor> RoomFor(const MessageHead& head) {
  const bool is_type =
      head.type >= 0 && head.type < static_cast<int64_t>(torch::ScalarType::NumOptions);
  bool is_sized = head.dimensions >= 0 && head.dimensions <= int64_t{kMostDimensions};
  for (size_t i = 0; is_sized && i < static_cast<size_t>(head.dimensions); ++i) {
    is_sized = head.sizes[i] >= 0;
  }
  if (!is_type || !is_sized) return absl::InternalError("a stage sent what is no tensor");
  const torch::IntArrayRef sizes(head.sizes.data(), static_cast<size_t>(head.dimensions));
  const bool of_images = head.dimensions == 4;
  return torch::empty(sizes, torch::dtype(static_cast<torch::ScalarType>(head.type)),
                      of_images ? FormatOf(head) : torch::MemoryFormat::Contiguous);
}

}  // namespace

absl::Status Renumbered(const absl::Status& status, const std::vector<int>& whole) {
  const std::optional<int> lost = comm::LostRank(status);
  if (!lost || *lost < 0 || *lost >= static_cast<int>(whole.size())) return status;
  return comm::ErrorAboutRank(whole[static_cast<size_t>(*lost)], status.code(), status.message());
}

TensorPipe::TensorPipe(std::unique_ptr<comm::Communicator> pair, int from, std::vector<int> whole)
    : from_(from), whole_(std::move(whole)), stream_(std::move(pair)) {
  stream_.Issue([](comm::Communicator&) {
    AskForShortSlices();
    return absl::OkStatus();
  });
}

void TensorPipe::Send(const torch::Tensor& tensor, base::Deadline deadline) {
  const MessageHead head = HeadOf(tensor);
  const torch::Tensor dense = tensor.detach().cpu().contiguous(FormatOf(head));
  sent_ = stream_.Issue([head, dense, deadline, to = 1 - from_](comm::Communicator& pair) {
    TUTTI_RETURN_IF_ERROR(pair.Send(&head, sizeof(head), to, deadline));
    return pair.Send(dense.const_data_ptr(), dense.nbytes(), to, deadline);
  });
}

absl::Status TensorPipe::Flush() {
  return sent_ == 0 ? absl::OkStatus() : Renumbered(stream_.Wait(sent_), whole_);
}

void TensorPipe::Expect(int64_t messages, base::Deadline deadline) {
  deadline_ = deadline;
  expected_ += messages;
  if (arrivals_.empty() && expected_ > 0) TakeOne();
}

void TensorPipe::TakeOne() {
  --expected_;
  auto tensor = std::make_shared<torch::Tensor>();
  const auto take = [tensor, from = from_, deadline = deadline_](comm::Communicator& pair) {
    MessageHead head;
    TUTTI_RETURN_IF_ERROR(pair.Receive(&head, sizeof(head), from, deadline));
    TUTTI_ASSIGN_OR_RETURN(*tensor, RoomFor(head));
    return pair.Receive(tensor->mutable_data_ptr(), tensor->nbytes(), from, deadline);
  };
  arrivals_.push_back({stream_.Issue(take), std::move(tensor)});
}

absl::StatusOr<torch::Tensor> TensorPipe::Receive() {
  if (arrivals_.empty()) return absl::InternalError("a stage waits for what nobody sends");
  const Arrival next = arrivals_.front();
  arrivals_.pop_front();
  if (expected_ > 0) TakeOne();
  TUTTI_RETURN_IF_ERROR(Renumbered(stream_.Wait(next.ticket), whole_));
  return std::move(*next.tensor);
}

}  // namespace tutti::parallel
