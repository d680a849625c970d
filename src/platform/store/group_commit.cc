#include "platform/store/group_commit.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace tutti::store {

absl::Status GroupCommit::Write(const Body& body, Durability durability) {
  Request own{&body, durability, absl::InternalError("the store: this write was given up")};
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
  return own.status;
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
    if (database_->WriteTogether(bodies, statuses, durability).ok()) {
      for (size_t i = 0; i < batch.size(); ++i) batch[i]->status = std::move(statuses[i]);
      return;
    }
  }
  for (Request* request : batch) {
    request->status = database_->Write(*request->body, request->durability);
  }
}

}  // namespace tutti::store
