// Coordinator is rank 0's part of the negotiation: it knows which rank has announced what, and
// decides what runs next. A pure state machine: time is a parameter, and what is to be said to the
// ranks is returned (as Orders, in order).
//
// A tensor is pending from its first announcement until all ranks of its process set have announced
// it (or have joined, see below); then it is ready. Ready tensors are released in the order in
// which they became ready, save that those which fuse with an earlier one go with that.
//
// Every rank is told every response that it takes part in, in the one order of release, and
// runs them one after the other. So no two ranks wait for each other: consider, of the responses
// that some rank has not finished, the one released first. Each of its ranks has finished all that
// it runs before it (those were released earlier), and has what it needs, since it announced it or
// joined: so each of them runs it, and it ends. By induction all end. (Its errors end too, since
// they are decided here and told to all that wait.) Nothing a rank waits for is decided by a rank
// that waits: rank 0 decides on a thread that runs no collective.
//
// When to release: a tensor waits for others to fuse with only while something of its process set
// is in flight, and no longer than the cycle time. What is in flight is known from the set's first
// rank, which says how many responses it has executed.
//
// Join: a rank that has joined counts as having announced every all-reduce of the set; it
// contributes the operation's neutral element. Barriers count it too; all else fails beside it.
// When the last has joined, all are told who that was, and none has joined any more.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/comm/negotiation/coordination/coordination_message.h"
#include "runtime/comm/negotiation/coordination/stall_inspector.h"
#include "runtime/comm/negotiation/coordination/tensor_table.h"

namespace tutti::comm {

struct CoordinatorOptions {
  int size = 1;                    // of the world
  size_t fusion_bytes = 64 << 20;  // how much is fused at most; 0: nothing
  absl::Duration cycle_time = absl::Milliseconds(1);
  size_t cache_capacity = 1024;  // requests that have a number; 0: none
  StallOptions stall;
  // Every announcement of a tensor, for who records. May be null.
  std::function<void(const std::string& tensor, int rank)> on_announced;
};

class Coordinator {
 public:
  // Points in time are durations since any one moment.
  explicit Coordinator(const CoordinatorOptions& options);

  void OnReport(int from, const Report& report, absl::Duration now);
  // Acts on what is due; `silence[r]`: how long nothing has been heard of rank r (empty: unknown).
  void OnTick(absl::Duration now, std::span<const absl::Duration> silence);
  // Returns when OnTick wants to be called next at the latest.
  absl::Duration NextTick() const;
  // Ends it for all, as far as nothing did.
  void Finish(const End& end);

  void Tune(size_t fusion_bytes, absl::Duration cycle_time);

  // Returns what goes out, by rank.
  std::vector<std::pair<int, Orders>> TakeOutgoing();

  // Returns the bytes of the all-reduces that were executed so far, for who measures.
  uint64_t executed_bytes() const { return executed_bytes_; }
  uint64_t releases() const { return releases_; }
  bool idle() const { return tensors_.pending().empty() && in_flight_.empty(); }

 private:
  struct ProcessSet {
    std::optional<size_t> IndexOf(int rank) const;

    std::vector<int> ranks;  // of the world, ascending
    std::vector<bool> joined;
    int last_joined = -1;
    std::vector<Tensor*> ready;
    absl::Duration ready_since;
    size_t ready_bytes = 0;
    bool urgent = false;  // something that waits for no other is ready
    uint64_t released =
        0;  // how many responses its first rank has been told of at its last release
  };
  struct Flight {  // a response that is being run
    int set;
    uint64_t number;  // of the set's first rank
    size_t bytes;
    std::string tensor;  // the first's name
    absl::Duration since;
  };

  using Tensors = std::vector<Tensor*>;

  void Announce(int from, const Announcement& announcement, absl::Duration now);
  void Record(int from, size_t index, const Announcement& announcement, Tensor& tensor);
  void Refuse(int from, const Request& request, absl::string_view text);
  void Settle(Tensor& tensor, absl::Duration now);
  void SettleAll(int set, absl::Duration now);
  bool IsComplete(const Tensor& tensor, const ProcessSet& set) const;
  std::string Objection(const Tensor& tensor, const ProcessSet& set) const;
  void Fail(Tensor& tensor, absl::StatusCode code, absl::string_view text, int blamed);
  void MakeReady(Tensor& tensor, ProcessSet& set, absl::Duration now);
  void OnExecuted(int from, uint64_t executed);
  void OnLeft(int rank, absl::Duration now);

  bool IsDue(const ProcessSet& set, absl::Duration now) const;
  void ReleaseDue(absl::Duration now);
  void Release(int number, ProcessSet& set, absl::Duration now);
  void Send(int number, Response response, const Tensors& tensors, absl::Duration now);
  void SendResponse(int rank, const Response& response);
  // Concludes what changes the sets themselves, and join.
  void Conclude(Tensor& tensor, absl::Duration now);
  absl::StatusOr<int64_t> Apply(const Request& request);
  absl::StatusOr<int64_t> AddSet(const std::vector<int>& ranks);
  absl::StatusOr<int64_t> RemoveSet(int set);

  std::vector<Waiting> WhatWaits() const;
  void Inspect(absl::Duration now, std::span<const absl::Duration> silence);

  CoordinatorOptions options_;
  TensorTable tensors_;
  std::map<int, ProcessSet> sets_;
  int next_set_ = 1;
  std::vector<uint64_t> told_;      // responses, by rank
  std::vector<uint64_t> executed_;  // of them
  std::vector<bool> left_;
  std::deque<Flight> in_flight_;
  StallInspector inspector_;
  absl::Duration next_inspection_ = -absl::InfiniteDuration();
  uint64_t executed_bytes_ = 0;
  uint64_t releases_ = 0;
  bool finished_ = false;
  std::map<int, Orders> outgoing_;
};

}  // namespace tutti::comm
