// Mailbox takes messages, each a list of tensors, one way between two ranks, while both do other
// things: a pair of ranks with connections and a thread of its own at each end. What two users send
// each other never waits for what others do, since each has a mailbox; an error is that pair's
// alone, and whoever has it decides what it means for the run.
//
// Messages keep their order, and say their own shapes and types. Only so many wait to be sent, as
// the options say: a rank that sends more waits, or lets go of the oldest. Only so many have come
// before they are asked for; the others stay with the rank that sends. The threads ask for short
// time slices, since at each part of a message they wait for a core on which a stage computes.
//
// Thread-compatible.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "runtime/comm/stream.h"

namespace tutti::parallel {

using Message = std::vector<torch::Tensor>;

// A message's first tensor may be a struct of doubles: these make it of one, and read it.
template <typename Head>
torch::Tensor TensorOf(const Head& head) {
  return torch::from_blob(const_cast<Head*>(&head), {int64_t{sizeof(Head) / sizeof(double)}},
                          torch::kFloat64)
      .clone();
}
template <typename Head>
Head ReadHead(const torch::Tensor& tensor) {
  Head head;
  const torch::Tensor dense = tensor.to(torch::kFloat64).contiguous();
  std::memcpy(static_cast<void*>(&head), dense.const_data_ptr<double>(),
              std::min(sizeof(head), static_cast<size_t>(dense.nbytes())));
  return head;
}

struct MailboxOptions {
  enum class WhenFull { kWait, kDropOldest };

  int from = 0, to = 1;  // ranks of the group that both are in
  size_t waiting = 1;    // how many messages wait to be sent, beside one that is on its way
  WhenFull when_full = WhenFull::kWait;
  size_t ahead = 1;  // how many have come before they are asked for
  // Called on the mailbox's thread when a message has come, or will not: TryReceive tells at once,
  // or a moment later.
  std::function<void()> on_arrival = nullptr;
  // Is told, within Send, of a message that was let go of.
  std::function<void(const Message& message)> on_drop = nullptr;
};

class Mailbox {
 public:
  // Both ranks call it with the same options, at the same place among the calls of their group.
  // InvalidArgument: a box that holds nothing at one of its ends.
  static absl::StatusOr<std::unique_ptr<Mailbox>> Open(comm::Communicator& ranks,
                                                       const MailboxOptions& options,
                                                       base::Deadline deadline);
  // Waits for what is under way: see CloseAll.
  ~Mailbox() = default;

  // At the end that sends. Queues a message, whose tensors nobody changes from now on; they are
  // kept alive until they are sent. One tensor at least; each of at most eight dimensions (else
  // it is InvalidArgument), of any type and device. `deadline` bounds the wait for room and the
  // sending of this message. Other errors are those of an earlier one.
  absl::Status Send(Message message, base::Deadline deadline);
  // Waits until all have been sent.
  absl::Status Flush();
  // Counts the messages that were let go of.
  int64_t dropped() const;

  // At the end that receives. Says that so many more messages will be asked for, and begins to take
  // the first of them.
  void Expect(int64_t messages, base::Deadline deadline);
  // Takes whatever comes from now on, in place of what is expected, until the other end closes; one
  // message at the latest `silence` after the one before it.
  void Listen(absl::Duration silence);
  // Waits for the next one; begins to take those behind it. On the CPU. Cancelled: the other end
  // has closed.
  absl::StatusOr<Message> Receive();
  // Tells whether the next one has come: Receive will not wait.
  bool has_come() const;
  // Returns the next one if it has come.
  absl::StatusOr<std::optional<Message>> TryReceive();

  // Leaves the other ends of several, which leave in any order: each end waits for what it has
  // begun, which ends when the other one does it, says that it was the last, or leaves. `sends`:
  // what waits is sent before, and then that there is no more; else nothing is, after an error.
  static void CloseAll(std::vector<std::unique_ptr<Mailbox>> mailboxes, bool sends);

 private:
  struct Outgoing {
    Message message;  // empty: the last word
    base::Deadline deadline;
  };
  struct Arrival {
    comm::Stream::Ticket ticket;
    std::shared_ptr<Message> message;  // empty: the other end has closed
  };

  Mailbox(std::unique_ptr<comm::Communicator> pair, const MailboxOptions& options);
  // Takes the lock over in which room was found: there are never fewer messages than tickets.
  void Queue(std::unique_lock<std::mutex> lock, Message message, base::Deadline deadline);
  absl::Status SendNext(comm::Communicator& pair);
  void TakeMore();
  absl::StatusOr<Message> Take(Arrival arrival);

  const MailboxOptions options_;
  const int from_;                // in the pair
  const std::vector<int> whole_;  // the pair's numbers in the group
  mutable std::mutex mutex_;      // guards what follows, up to the blank line
  std::condition_variable room_;
  std::deque<Outgoing> outgoing_;
  size_t tickets_ = 0;  // of the stream, each for what is at the front when its turn comes
  int64_t dropped_ = 0;
  bool failed_ = false;

  comm::Stream::Ticket sent_ = 0;
  int64_t expected_ = 0;
  std::optional<absl::Duration> silence_;  // set: it listens
  base::Deadline deadline_ = base::Deadline::After(absl::ZeroDuration());
  std::deque<Arrival> arrivals_;
  std::atomic<bool> closed_ = false;  // by the other end
  comm::Stream stream_;               // its thread works on all above
};

}  // namespace tutti::parallel
