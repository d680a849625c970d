// Stream runs collectives while the caller goes on: a queue with one thread of its own over one
// group.
//
//   Stream stream(std::move(group));
//   const Stream::Ticket ticket = stream.Issue([=](Communicator& group) {
//     return group.AllReduce(data, count, DataType::kFloat32, ReduceOp::kSum, deadline);
//   });
//   ...                                     // data belongs to the stream meanwhile
//   absl::Status status = stream.Wait(ticket);
//
// Collectives run in the order in which they were issued, so that ranks that issue the same
// sequence always meet in the same one. The first error ends the stream: what is issued later fails
// with it. Streams over different groups are independent (Communicator::NewGroup).
//
// Every wait lasts until the collective has concluded, so that it never writes into memory that its
// caller has given up, and its error is the one that names the rank that was late. A collective's
// own deadline bounds the wait: there is no other one, which might end first.
//
// Thread-safe. A group of one has no thread: its collectives wait for nobody and run inside Issue.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "runtime/comm/communicator.h"

namespace tutti::comm {

class Stream {
 public:
  using Collective = std::function<absl::Status(Communicator&)>;
  using Ticket = int64_t;  // 1, 2, 3, ... in the order of issue

  explicit Stream(std::unique_ptr<Communicator> communicator);
  // Drops what has not begun and waits for what has (its own deadline bounds that).
  ~Stream();

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  Placement placement() const { return communicator_->placement(); }

  // Queues it; it takes a deadline of its own. Its memory must live until Wait or Done said that it
  // is done, or the stream is gone.
  Ticket Issue(Collective collective);
  // Waits until that collective and all before it are done, or one of these has failed: nothing of
  // them runs any more.
  absl::Status Wait(Ticket ticket);
  // Tells whether Wait would return at once: it is done or has failed.
  bool Done(Ticket ticket) const;
  absl::Status Run(Collective collective) { return Wait(Issue(std::move(collective))); }
  // Returns the first error, or OK.
  absl::Status status() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  void Serve();
  bool Settled(Ticket ticket) const { return done_ >= ticket || !status_.ok(); }
  void Conclude(absl::Status status);

  const std::unique_ptr<Communicator> communicator_;
  mutable std::mutex mutex_;  // guards what follows, save the thread
  std::condition_variable issued_something_;
  std::condition_variable concluded_;
  std::deque<Collective> queue_;
  Ticket issued_ = 0;
  Ticket done_ = 0;
  bool closing_ = false;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace tutti::comm
