#include "runtime/comm/negotiation/submissions.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tutti::comm {

absl::StatusOr<Announcement> Submissions::Add(std::unique_ptr<Task> task) {
  const Request& request = task->submission.request;
  std::string key = request.Key();
  if (by_key_.count(key) > 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("tensor \"", request.name,
                     "\" is outstanding already: a name may be used again when its operation is "
                     "done"));
  }
  Announcement announcement;
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.request == request) {
    announcement.id = known->second.id;
    by_id_[announcement.id] = key;
  } else {
    announcement.request = request;
  }
  if (request.kind == Kind::kAllGather) announcement.rows = task->submission.rows;
  by_key_[std::move(key)] = {std::move(task), announcement.id};
  return announcement;
}

std::unique_ptr<Task> Submissions::Take(int set, const Unit& unit) {
  std::string key;
  if (unit.full) {
    key = unit.request.Key();
  } else if (const auto named = by_id_.find(unit.id); named != by_id_.end()) {
    key = named->second;
  }
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  std::unique_ptr<Task> task = std::move(found->second.task);
  by_id_.erase(found->second.id);
  by_key_.erase(found);
  if (unit.code != absl::StatusCode::kOk || unit.id == 0) {
    known_.erase(key);
  } else {
    // Forgetting costs one announcement in full: no need to be clever about which.
    if (known_.size() > 2 * capacity_) known_.clear();
    known_[key] = {unit.id, task->submission.request};
  }
  return task;
}

std::vector<Announcement> Submissions::InFull(uint32_t id) {
  std::vector<Announcement> announcements;
  const auto named = by_id_.find(id);
  if (named == by_id_.end()) return announcements;
  known_.erase(named->second);
  Entry& entry = by_key_.at(named->second);
  entry.id = 0;
  by_id_.erase(named);
  const Submission& submission = entry.task->submission;
  Announcement& announcement = announcements.emplace_back();
  announcement.request = submission.request;
  if (submission.request.kind == Kind::kAllGather) announcement.rows = submission.rows;
  return announcements;
}

std::vector<std::unique_ptr<Task>> Submissions::TakeAll() {
  std::vector<std::unique_ptr<Task>> tasks;
  for (auto& [key, entry] : by_key_) tasks.push_back(std::move(entry.task));
  by_key_.clear();
  by_id_.clear();
  return tasks;
}

bool Submissions::Joined(int set) const {
  Request join;
  join.set = set;
  join.name = NameOf(Kind::kJoin);
  const auto found = by_key_.find(join.Key());
  return found != by_key_.end() && found->second.task->submission.request.kind == Kind::kJoin;
}

std::vector<Waiting> Submissions::WhatWaits(std::vector<int> missing) const {
  std::vector<Waiting> waiting;
  for (const auto& [key, entry] : by_key_) {
    const Request& request = entry.task->submission.request;
    waiting.push_back({&request.name, request.set, entry.task->since, nullptr, missing});
  }
  return waiting;
}

}  // namespace tutti::comm
