// Links is what a collective runs on: this rank's channels to others, and the one loop that drives
// them.
//
// A collective describes what it moves as a Flow: a stream of bytes to one rank and another from
// one rank, at once. The loop never waits for one direction alone: it sends what may leave and
// takes what has come, and sleeps only when neither is possible. So a rank that cannot send still
// takes, and no cycle of ranks that all wait to send can stand still. It ends when the flow is done
// and nothing that was sent waits in this process any more (Channel::Flush): a rank that has left a
// collective owes nobody a byte, so the proofs need not know what a channel does with bytes.
//
// Links that few need are made when they are first needed, by both sides, inside the call that
// needs them. That cannot deadlock either. Suppose the program is one that would end if every send
// waited for its receive; then its calls can be put in an order in which every rank's come in its
// own order. Take the first of them that is not finished: all ranks that take part in it have
// finished what they had to do before, so they are inside it or come to it, and nobody in it waits
// for anybody outside. Those that connect are answered by those that accept (connect.h), who
// also answer ranks that are inside later calls, and so never stand in their way.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "runtime/comm/collective/selection.h"
#include "runtime/comm/collective/spin_limit.h"
#include "runtime/comm/rendezvous/membership/membership.h"
#include "runtime/comm/transport/connect/connector.h"
#include "runtime/comm/transport/transport.h"

namespace tutti::comm {

class Flow {
 public:
  virtual ~Flow() = default;
  // Returns the bytes that may leave now; none when there are none at all or they are not ready
  // yet.
  virtual std::span<const std::byte> Outgoing() = 0;
  // Returns the same in several parts that follow each other, none of them empty, as many as fit
  // into `parts`; how many. A flow of small pieces so needs one system call for several of them.
  virtual size_t OutgoingParts(std::span<std::span<const std::byte>> parts) {
    parts[0] = Outgoing();
    return parts[0].empty() ? 0 : 1;
  }
  virtual void Sent(size_t bytes) = 0;
  // Returns how many bytes must have come before Take can do something; 0: nothing is expected.
  virtual size_t MinIncoming() = 0;
  // Takes what has come; how many bytes that was.
  virtual absl::StatusOr<size_t> Take(Channel& from) = 0;
  virtual bool Done() const = 0;
};

// Not thread-safe.
class Links {
 public:
  // `channels[r]` leads to rank r, or is null until somebody reaches for it. `spins`: how often to
  // look at shared memory again before sleeping, at most; a look at a socket is a system call and
  // counts as ten.
  Links(int rank, std::vector<std::unique_ptr<Channel>> channels,
        std::unique_ptr<Connector> connector, std::unique_ptr<Membership> membership, int spins);

  // Returns the links among these ranks alone, numbered anew in this order, with this rank among
  // them: for an algorithm that runs over a part of the group. They are the same links, used in
  // turn.
  Links Subset(std::vector<int> members) const;

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Returns the rank's number in the whole group.
  int Number(int peer) const { return numbers_.empty() ? peer : numbers_[peer]; }
  Membership& membership() { return *core_->membership; }
  const Connector& connector() const { return *core_->connector; }  // of the whole group
  // Returns what an algorithm is chosen by: equal on all ranks.
  const LinkCost& cost() const { return core_->cost; }
  void set_cost(const LinkCost& cost) { core_->cost = cost; }
  int Right(int distance = 1) const { return (rank_ + distance) % size_; }
  int Left(int distance = 1) const { return (rank_ + size_ - distance % size_) % size_; }

  // Returns whether there is a link, or one that came by itself waits to be used.
  bool IsConnected(int peer) const {
    return channel(peer) != nullptr || core_->connector->HasCome(Number(peer));
  }
  // Makes the links that NeedsLink has not promised: to one rank, which reaches for this one, or,
  // by all ranks at once, to all. Errors name a rank and end the group.
  absl::Status Connect(int peer, base::Deadline deadline);
  absl::Status ConnectAll(base::Deadline deadline);

  // Returns the socket of the link with a rank that shares memory; no collective may be under way.
  int SocketOf(int peer) const { return channel(peer)->fd(); }

  // Moves bytes until the flow is done. `to` or `from` is -1 when the flow has no such side. Errors
  // name a rank and end the group.
  absl::Status Move(Flow& flow, int to, int from, base::Deadline deadline);

  // Moves `outgoing` to one rank and `incoming` from another, at once; either may be empty (with
  // rank -1).
  absl::Status Exchange(int to, std::span<const std::byte> outgoing, int from,
                        std::span<std::byte> incoming, base::Deadline deadline);
  absl::Status Send(int to, std::span<const std::byte> bytes, base::Deadline deadline) {
    return Exchange(to, bytes, -1, {}, deadline);
  }
  absl::Status Receive(int from, std::span<std::byte> bytes, base::Deadline deadline) {
    return Exchange(-1, {}, from, bytes, deadline);
  }

 private:
  absl::StatusOr<bool> Step(Flow& flow, int to, int from);
  absl::StatusOr<size_t> SendSome(Flow& flow, int to);
  absl::StatusOr<bool> FlushTo(int to);
  absl::Status Sleep(Flow& flow, bool flushed, int to, int from, base::Deadline deadline);
  absl::Status CheckStillGoing(Flow& flow, int to, int from, base::Deadline deadline);
  bool IsCheapToWatch(int to, int from) const;
  absl::Status ReportFailure(int peer, Reason reason) {
    return core_->membership->ReportFailure(Number(peer), reason);
  }
  Channel* channel(int peer) const {
    return peer < 0 ? nullptr : core_->channels[Number(peer)].get();
  }

  // In this order: the leave notice goes out before the channels close, and connections after it
  // are refused.
  struct Core {
    std::vector<std::unique_ptr<Channel>> channels;
    std::unique_ptr<Connector> connector;
    std::unique_ptr<Membership> membership;
    SpinLimit patience;  // with shared memory
    SpinLimit socket_patience;
    LinkCost cost = kUsualCost;
  };
  Links(std::shared_ptr<Core> core, int rank, std::vector<int> numbers);

  std::shared_ptr<Core> core_;
  int rank_;
  int size_;
  std::vector<int> numbers_;  // empty: all, as they are
};

// Most collectives talk over distances that are powers of two alone (the ring: one), so that a rank
// of a group of n begins with at most 2 log2(n) channels.
bool NeedsLink(int a, int b, int size);

}  // namespace tutti::comm
