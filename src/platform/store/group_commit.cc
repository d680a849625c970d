#include "platform/store/group_commit.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/deadline.h"
#include "base/status.h"

namespace tutti::store {
namespace {

// Not what the write itself says, as that there is such a job already.
bool IsFailureOfStore(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status) ||
         absl::IsDataLoss(status) || absl::IsInternal(status);
}

}  // namespace

absl::Status GroupCommit::Write(const Body& body, Durability durability) {
  return Write(body, durability, /*last_event=*/0);
}

absl::Status GroupCommit::Write(const Body& body, Durability durability, const int64_t& last_event,
                                int64_t* number) {
  const Body numbered = [&](SqliteConnection& sqlite) {
    const int64_t own = mark_->BeginWrite(durability);
    if (number != nullptr) *number = own;
    return body(sqlite);
  };
  const absl::Duration began = base::SteadyNow();
  absl::Status status = WriteInTurn(numbered, durability, last_event);
  absl::MutexLock lock(&mutex_);
  times_.Add(base::SteadyNow() - began);
  if (IsFailureOfStore(status)) ++failed_;
  return status;
}

void GroupCommit::Count(WriteCounts& counts) const {
  counts.transactions += transactions_;
  absl::MutexLock lock(&mutex_);
  counts.failed += failed_;
  counts.waiting += static_cast<int64_t>(waiting_.size());
  counts.times = times_;
}

absl::Status GroupCommit::WriteInTurn(const Body& body, Durability durability,
                                      const int64_t& last_event) {
  Request own{&body, durability, &last_event,
              absl::InternalError("the store: this write was given up")};
  std::vector<Request*> batch;
  {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(&own);
    const auto my_turn = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return own.done || !at_work_;
    };
    mutex_.Await(absl::Condition(&my_turn));
    if (own.done) return own.status;
    at_work_ = true;
    batch = std::exchange(waiting_, {});
  }
  {
    // Whatever is thrown: the others do not wait for ever, and the next write has its turn.
    const absl::Cleanup end = [&] {
      absl::MutexLock lock(&mutex_);
      for (Request* request : batch) request->done = true;
      at_work_ = false;
    };
    Commit(batch);
  }
  // It lies behind what a failed sync may have lost.
  const bool is_behind = durability == Durability::kPowerLoss && mark_->has_failed();
  return own.status.ok() && is_behind ? mark_->AwaitAll() : own.status;
}

void GroupCommit::Commit(const std::vector<Request*>& batch) {
  absl::MutexLock lock(database_mutex_);
  if (batch.size() > 1) {
    std::vector<const Body*> bodies;
    Durability durability = Durability::kCrash;
    for (const Request* request : batch) {
      bodies.push_back(request->body);
      durability = std::max(durability, request->durability);
    }
    std::vector<absl::Status> statuses;
    ++transactions_;
    const bool written = database_->WriteTogether(bodies, statuses, durability).ok();
    if (written) {
      for (size_t i = 0; i < batch.size(); ++i) batch[i]->status = std::move(statuses[i]);
      return NoteEnd(batch);
    }
  }
  for (Request* request : batch) {
    ++transactions_;
    request->status = database_->Write(*request->body, request->durability);
    NoteEnd({request});
  }
}

void GroupCommit::NoteEnd(const std::vector<Request*>& batch) {
  int64_t last_event = 0;
  for (const Request* request : batch) {
    if (request->status.ok()) last_event = std::max(last_event, *request->last_event);
  }
  mark_->EndWrites(last_event);
}

}  // namespace tutti::store
