#include "runtime/parallel/mailbox.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/lost_rank.h"

namespace tutti::parallel {
namespace {

constexpr size_t kMostDimensions = 8;
constexpr int64_t kClosing = -1;  // in the place of a type
// How long the last word may take, for which the other end need not wait.
constexpr absl::Duration kToClose = absl::Seconds(10);

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

// What goes before the elements of each tensor.
struct TensorHead {
  int64_t type = 0, dimensions = 0;
  int64_t channels_last = 0;
  int64_t following = 0;  // tensors of the same message
  std::array<int64_t, kMostDimensions> sizes = {};
};

torch::MemoryFormat FormatOf(const TensorHead& head) {
  return head.channels_last != 0 ? torch::MemoryFormat::ChannelsLast
                                 : torch::MemoryFormat::Contiguous;
}

TensorHead HeadOf(const torch::Tensor& tensor, size_t following) {
  TensorHead head;
  head.type = static_cast<int64_t>(tensor.scalar_type());
  head.dimensions = tensor.dim();
  head.channels_last = tensor.suggest_memory_format() == torch::MemoryFormat::ChannelsLast ? 1 : 0;
  head.following = static_cast<int64_t>(following);
  std::copy_n(tensor.sizes().begin(), tensor.dim(), head.sizes.begin());
  return head;
}

// From another rank of the same program, and yet not to be trusted to be whole.
absl::StatusOr<torch::Tensor> RoomFor(const TensorHead& head) {
  const bool is_type =
      head.type >= 0 && head.type < static_cast<int64_t>(torch::ScalarType::NumOptions);
  bool is_sized = head.dimensions >= 0 && head.dimensions <= int64_t{kMostDimensions};
  for (size_t i = 0; is_sized && i < static_cast<size_t>(head.dimensions); ++i) {
    is_sized = head.sizes[i] >= 0;
  }
  if (!is_type || !is_sized) return absl::InternalError("another rank sent what is no tensor");
  const torch::IntArrayRef sizes(head.sizes.data(), static_cast<size_t>(head.dimensions));
  const bool of_images = head.dimensions == 4;
  return torch::empty(sizes, torch::dtype(static_cast<torch::ScalarType>(head.type)),
                      of_images ? FormatOf(head) : torch::MemoryFormat::Contiguous);
}

absl::Status SendMessage(comm::Communicator& pair, const Message& message, int to,
                         base::Deadline deadline) {
  for (size_t i = 0; i < message.size(); ++i) {
    const TensorHead head = HeadOf(message[i], message.size() - 1 - i);
    TUTTI_RETURN_IF_ERROR(pair.Send(&head, sizeof(head), to, deadline));
    TUTTI_RETURN_IF_ERROR(
        pair.Send(message[i].const_data_ptr(), message[i].nbytes(), to, deadline));
  }
  if (!message.empty()) return absl::OkStatus();
  const TensorHead closing{.type = kClosing};
  return pair.Send(&closing, sizeof(closing), to, deadline);
}

absl::Status ReceiveMessage(comm::Communicator& pair, Message& message, int from,
                            base::Deadline deadline) {
  TensorHead head;
  do {
    TUTTI_RETURN_IF_ERROR(pair.Receive(&head, sizeof(head), from, deadline));
    if (head.type == kClosing && message.empty()) return absl::OkStatus();
    TUTTI_ASSIGN_OR_RETURN(torch::Tensor tensor, RoomFor(head));
    TUTTI_RETURN_IF_ERROR(pair.Receive(tensor.mutable_data_ptr(), tensor.nbytes(), from, deadline));
    message.push_back(std::move(tensor));
  } while (head.following > 0);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Mailbox>> Mailbox::Open(comm::Communicator& ranks,
                                                       const MailboxOptions& options,
                                                       base::Deadline deadline) {
  if (options.waiting == 0 || options.ahead == 0) {
    return absl::InvalidArgumentError("a mailbox holds a message at each end, or more");
  }
  const std::array<int, 2> both = {options.from, options.to};
  TUTTI_ASSIGN_OR_RETURN(auto pair, ranks.NewGroup(both, deadline));
  return std::unique_ptr<Mailbox>(new Mailbox(std::move(pair), options));
}

Mailbox::Mailbox(std::unique_ptr<comm::Communicator> pair, const MailboxOptions& options)
    : options_(options),
      from_(options.from < options.to ? 0 : 1),
      whole_({std::min(options.from, options.to), std::max(options.from, options.to)}),
      stream_(std::move(pair)) {
  stream_.Issue([](comm::Communicator&) {
    AskForShortSlices();
    return absl::OkStatus();
  });
}

absl::Status Mailbox::Send(Message message, base::Deadline deadline) {
  if (message.empty()) return absl::InvalidArgumentError("a message has a tensor, or more");
  for (torch::Tensor& tensor : message) {
    if (tensor.dim() > int64_t{kMostDimensions}) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a tensor of ", tensor.dim(), " dimensions, and ", kMostDimensions, " are the most"));
    }
    tensor = tensor.detach().cpu().contiguous(FormatOf(HeadOf(tensor, 0)));
  }
  std::unique_lock<std::mutex> lock(mutex_);
  const size_t most = options_.waiting;
  Message let_go;
  if (outgoing_.size() >= most && options_.when_full == MailboxOptions::WhenFull::kDropOldest) {
    let_go = std::move(outgoing_.front().message);
    outgoing_.pop_front();
    ++dropped_;
  }
  const auto has_room = [&] { return outgoing_.size() < most || failed_; };
  if (!room_.wait_until(lock, deadline.time_point(), has_room)) {
    return comm::ErrorAboutRank(
        options_.to, absl::StatusCode::kDeadlineExceeded,
        absl::StrCat("rank ", options_.to, " is late to take one of ", most, " that wait"));
  }
  Queue(std::move(lock), std::move(message), deadline);
  if (!let_go.empty() && options_.on_drop) options_.on_drop(let_go);
  return comm::Renumbered(stream_.status(), whole_);
}

// The ticket of a message that was let go of is the next one's.
void Mailbox::Queue(std::unique_lock<std::mutex> lock, Message message, base::Deadline deadline) {
  outgoing_.push_back({std::move(message), deadline});
  if (tickets_ == outgoing_.size()) return;
  ++tickets_;
  lock.unlock();
  sent_ = stream_.Issue([this](comm::Communicator& pair) { return SendNext(pair); });
}

absl::Status Mailbox::SendNext(comm::Communicator& pair) {
  std::unique_lock<std::mutex> lock(mutex_);
  const Outgoing next = std::move(outgoing_.front());
  outgoing_.pop_front();
  --tickets_;
  lock.unlock();
  room_.notify_all();
  const absl::Status sent = SendMessage(pair, next.message, 1 - from_, next.deadline);
  if (!sent.ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_ = true;
  }
  room_.notify_all();
  return sent;
}

absl::Status Mailbox::Flush() {
  return sent_ == 0 ? absl::OkStatus() : comm::Renumbered(stream_.Wait(sent_), whole_);
}

int64_t Mailbox::dropped() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

void Mailbox::Expect(int64_t messages, base::Deadline deadline) {
  deadline_ = deadline;
  expected_ += messages;
  TakeMore();
}

void Mailbox::Listen(absl::Duration silence) {
  silence_ = silence;
  TakeMore();
}

void Mailbox::TakeMore() {
  while (arrivals_.size() < options_.ahead && (silence_ || expected_ > 0)) {
    if (!silence_) --expected_;
    auto message = std::make_shared<Message>();
    const auto take = [this, message, deadline = deadline_,
                       silence = silence_](comm::Communicator& pair) -> absl::Status {
      const absl::Cleanup tell = [this] {
        if (options_.on_arrival) options_.on_arrival();
      };
      if (closed_) return absl::OkStatus();
      TUTTI_RETURN_IF_ERROR(ReceiveMessage(pair, *message, from_,
                                           silence ? base::Deadline::After(*silence) : deadline));
      closed_ = message->empty();
      return absl::OkStatus();
    };
    arrivals_.push_back({stream_.Issue(take), std::move(message)});
  }
}

absl::StatusOr<Message> Mailbox::Take(Arrival arrival) {
  TUTTI_RETURN_IF_ERROR(comm::Renumbered(stream_.Wait(arrival.ticket), whole_));
  if (!arrival.message->empty()) return std::move(*arrival.message);
  return comm::ErrorAboutRank(options_.from, absl::StatusCode::kCancelled,
                              absl::StrCat("rank ", options_.from, " sends no more messages"));
}

absl::StatusOr<Message> Mailbox::Receive() {
  if (arrivals_.empty()) return absl::InternalError("a rank waits for what nobody sends");
  Arrival next = std::move(arrivals_.front());
  arrivals_.pop_front();
  TakeMore();
  return Take(std::move(next));
}

bool Mailbox::has_come() const {
  return !arrivals_.empty() && stream_.Done(arrivals_.front().ticket);
}

absl::StatusOr<std::optional<Message>> Mailbox::TryReceive() {
  if (!has_come()) return std::nullopt;
  TUTTI_ASSIGN_OR_RETURN(Message message, Receive());
  return message;
}

void Mailbox::CloseAll(std::vector<std::unique_ptr<Mailbox>> mailboxes, bool sends) {
  std::vector<std::jthread> leaving;
  for (std::unique_ptr<Mailbox>& mailbox : mailboxes) {
    if (mailbox == nullptr) continue;
    leaving.emplace_back([&mailbox, sends] {
      const bool is_sender = mailbox->stream_.rank() == mailbox->from_;
      if (is_sender && sends) {
        mailbox->Queue(std::unique_lock<std::mutex>(mailbox->mutex_), {},
                       base::Deadline::After(kToClose));
        mailbox->Flush().IgnoreError();
      }
      mailbox.reset();
    });
  }
}

}  // namespace tutti::parallel
