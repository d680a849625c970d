// Submissions holds what this rank has submitted and not yet been told the turn of, and the numbers
// by which it may announce a request again (its side of the response cache). Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "runtime/comm/negotiation/coordination/coordination_message.h"
#include "runtime/comm/negotiation/coordination/stall_inspector.h"
#include "runtime/comm/negotiation/execution/runner.h"

namespace tutti::comm {

class Submissions {
 public:
  explicit Submissions(size_t capacity) : capacity_(capacity) {}

  // Adds a task; returns what rank 0 is to be told. AlreadyExists while one of that name is there.
  absl::StatusOr<Announcement> Add(std::unique_ptr<Task> task);
  // Returns the task of a unit whose turn has come; null if this rank has none.
  std::unique_ptr<Task> Take(int set, const Unit& unit);
  // Returns the announcements in full of those that were announced by this number.
  std::vector<Announcement> InFull(uint32_t id);
  std::vector<std::unique_ptr<Task>> TakeAll();
  // Returns whether a join of that set is outstanding.
  bool Joined(int set) const;

  bool empty() const { return by_key_.empty(); }
  // Lists what waits, for the stall inspector.
  std::vector<Waiting> WhatWaits(std::vector<int> missing) const;

 private:
  struct Entry {
    std::unique_ptr<Task> task;
    uint32_t id = 0;  // by which it was announced
  };
  struct Known {
    uint32_t id;
    Request request;
  };

  const size_t capacity_;
  std::unordered_map<std::string, Entry> by_key_;
  std::unordered_map<uint32_t, std::string> by_id_;  // keys of those announced by number
  std::unordered_map<std::string, Known> known_;
};

}  // namespace tutti::comm
