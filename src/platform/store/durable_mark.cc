#include "platform/store/durable_mark.h"

namespace tutti::store {

int64_t DurableMark::BeginWrite(Durability durability) {
  absl::MutexLock lock(&mutex_);
  ++begun_;
  if (durability == Durability::kDeferred) deferred_ = begun_;
  return begun_;
}

void DurableMark::EndWrites(int64_t last_event) {
  absl::MutexLock lock(&mutex_);
  ended_.number = begun_;
  if (last_event > 0) ended_.event = last_event;
}

int64_t DurableMark::last_deferred() const {
  absl::MutexLock lock(&mutex_);
  return deferred_;
}

bool DurableMark::has_failed() const {
  absl::MutexLock lock(&mutex_);
  return has_failed_;
}

bool DurableMark::HasEvent(int64_t event) const {
  absl::MutexLock lock(&mutex_);
  return event <= durable_.event;
}

absl::Status DurableMark::Await(int64_t number) {
  Position synced;
  while (BeginSync(number, synced)) {
    const absl::Status status = sync_();
    EndSync(synced, status.ok());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status DurableMark::AwaitAll() {
  int64_t number = 0;
  {
    absl::MutexLock lock(&mutex_);
    number = ended_.number;
  }
  return Await(number);
}

bool DurableMark::BeginSync(int64_t number, Position& synced) {
  absl::MutexLock lock(&mutex_);
  const auto is_decided = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return durable_.number >= number || (!at_work_ && ended_.number >= number);
  };
  mutex_.Await(absl::Condition(&is_decided));
  if (durable_.number >= number) return false;
  at_work_ = true;
  synced = ended_;
  return true;
}

void DurableMark::EndSync(const Position& synced, bool ok) {
  absl::MutexLock lock(&mutex_);
  at_work_ = false;
  has_failed_ = !ok;
  if (ok && synced.number > durable_.number) durable_ = synced;
}

}  // namespace tutti::store
