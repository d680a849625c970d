#include "platform/service/stored_logs/log_storage.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "platform/service/stored_logs/bring_logs.h"
#include "platform/storage/storage_fault.h"

namespace tutti::service {
namespace {

using State = store::LogsNote::State;

constexpr absl::Duration kFirstLogPause = absl::Seconds(5);
constexpr absl::Duration kLongestLogPause = absl::Minutes(10);

base::RetryPause Pauses() { return {kFirstLogPause, kLongestLogPause}; }

// Whether the others of the store would not meet it.
bool IsOfOneJob(const absl::Status& failure) {
  if (storage::ConcernsAllObjects(failure)) return false;
  return !storage::ObjectOf(failure).empty() ||
         storage::SourceOf(failure) == storage::FaultSource::kDisk;
}

}  // namespace

LogStorage::LogStorage(SharedState& state, const Secrets& secrets)
    : LogStorage(state, [&state, &secrets](const std::string& job, int64_t sequence) {
        return BringLogs(state, secrets, job, sequence);
      }) {}

absl::Status LogStorage::Rebuild() {
  TUTTI_ASSIGN_OR_RETURN(const std::vector<store::EndedJob> jobs,
                         state_.store->EndedWithPendingLogs());
  for (const store::EndedJob& ended : jobs) {
    const auto record = state_.store->GetJob(ended.id);
    if (record.ok() && record->job.spec.logs_place) Add(record->job);
  }
  return absl::OkStatus();
}

void LogStorage::OnEvent(const store::Job& job, const store::Event& event, const EventDetail&) {
  if (!store::IsEnd(event.state) || job.spec.kind != spec::JobKind::kCommand) return;
  if (!job.spec.logs_place) return;
  Add(job);
  state_.Wake();
}

void LogStorage::Add(const store::Job& job) {
  const spec::DataPlace& place = *job.spec.logs_place;
  const std::string store =
      place.datastore.empty() ? spec::StoreOf(place) : absl::StrCat("datastore ", place.datastore);
  const std::string key = absl::StrCat(spec::StoreOf(place), " ", place.root, " ", place.secret);
  Queue& queue = queues_.try_emplace(key, Queue{store, Pauses()}).first->second;
  queue.jobs.push_back(
      {job.id, job.sequence, state_.clock->SinceBoot() + kLogsGivenUpAfter, Pauses()});
}

LogStorage::Jobs::iterator LogStorage::NextOf(Queue& queue) const {
  const absl::Duration now = state_.clock->SinceBoot();
  if (now < queue.not_before) return queue.jobs.end();
  return std::find_if(queue.jobs.begin(), queue.jobs.end(),
                      [&](const Pending& pending) { return now >= pending.not_before; });
}

void LogStorage::BringDue() {
  std::vector<std::string> due;
  {
    StateLock lock(state_);
    for (auto& [key, queue] : queues_) {
      if (queue.busy || NextOf(queue) == queue.jobs.end()) continue;
      queue.busy = true;
      due.push_back(key);
    }
  }
  for (const std::string& key : due) {
    state_.log_work.Do(key, [this, key] { BringAll(key); });
  }
}

void LogStorage::BringAll(const std::string& key) {
  Turn turn;
  // What throws, as for want of memory, ends this turn and holds up no later one.
  absl::Cleanup give_back = [&] { GiveBack(key, turn); };
  while (TakeNext(key, turn)) {
    const Pending& job = turn.current.front();
    NoteBrought(key, turn, bring_(job.job, job.sequence));
  }
  std::move(give_back).Cancel();
}

bool LogStorage::TakeNext(const std::string& key, Turn& turn) {
  StateLock lock(state_);
  Queue& queue = queues_.at(key);
  const auto next = NextOf(queue);
  if (!state_.ending && next != queue.jobs.end()) {
    turn.current.splice(turn.current.end(), queue.jobs, next);
    return true;
  }
  queue.busy = false;
  if (queue.jobs.empty()) {
    NoteProblem(queue, absl::OkStatus());
    queues_.erase(key);
  }
  return false;
}

void LogStorage::GiveBack(const std::string& key, Turn& turn) {
  StateLock lock(state_);
  Queue& queue = queues_.at(key);
  queue.jobs.splice(queue.jobs.begin(), turn.old);
  queue.jobs.splice(queue.jobs.begin(), turn.current);
  queue.not_before = state_.clock->SinceBoot() + queue.pauses.Next();
  queue.busy = false;
}

void LogStorage::NoteProblem(const Queue& queue, const absl::Status& status) {
  state_.problems.Note(absl::StrCat("logs of jobs cannot be brought to ", queue.store), status);
}

void LogStorage::NoteBrought(const std::string& key, Turn& turn,
                             const absl::StatusOr<std::string>& brought) {
  const Pending& job = turn.current.front();
  if (!brought.ok() && state_.ending) {  // the next service brings them
    StateLock lock(state_);
    Queue& queue = queues_.at(key);
    queue.jobs.splice(queue.jobs.begin(), turn.current);
    return;
  }
  if (!brought.ok() && !absl::IsInvalidArgument(brought.status())) {
    return TryLater(key, turn, brought.status());
  }
  store::LogsNote note{State::kStored, brought.value_or(""), state_.clock->Now()};
  if (brought.ok()) {
    StateLock lock(state_);
    Queue& queue = queues_.at(key);
    queue.pauses.Reset();
    NoteProblem(queue, absl::OkStatus());
  } else {
    note = {State::kGivenUp, std::string(brought.status().message()), note.time};
    spdlog::warn("job {}: its logs are not brought to its store: {}", job.job, note.reason);
  }
  const absl::Status noted = state_.store->NoteLogs(job.sequence, note);
  if (!noted.ok() && !absl::IsNotFound(noted)) return TryLater(key, turn, noted);
  turn.current.clear();
}

void LogStorage::TryLater(const std::string& key, Turn& turn, const absl::Status& failure) {
  Pending& job = turn.current.front();
  if (const std::string reason(failure.message()); reason != job.reason) {
    const store::LogsNote note{State::kPending, reason, state_.clock->Now()};
    const absl::Status noted = state_.store->NoteLogs(job.sequence, note);
    if (absl::IsNotFound(noted)) return turn.current.clear();  // the job was deleted meanwhile
    if (noted.ok()) job.reason = reason;
  }
  {
    StateLock lock(state_);
    Queue& queue = queues_.at(key);
    NoteProblem(queue, failure);
    const absl::Duration now = state_.clock->SinceBoot();
    if (IsOfOneJob(failure)) {
      job.not_before = now + job.pauses.Next();
      queue.jobs.splice(queue.jobs.end(), turn.current);
    } else {
      queue.not_before = now + queue.pauses.Next();
      queue.jobs.splice(queue.jobs.begin(), turn.current);
    }
    for (auto next = queue.jobs.begin(); next != queue.jobs.end();) {
      const auto at = next++;
      if (now >= at->given_up) turn.old.splice(turn.old.end(), queue.jobs, at);
    }
  }
  if (!turn.old.empty()) GiveUpOld(key, turn, failure);
}

void LogStorage::GiveUpOld(const std::string& key, Turn& turn, const absl::Status& failure) {
  std::vector<std::pair<int64_t, store::LogsNote>> notes;
  for (const Pending& job : turn.old) {
    const absl::string_view last =
        job.reason.empty() ? absl::string_view(failure.message()) : job.reason;
    std::string why = absl::StrCat("given up after ", absl::ToInt64Hours(kLogsGivenUpAfter) / 24,
                                   " days: ", last);
    notes.push_back({job.sequence, {State::kGivenUp, std::move(why), state_.clock->Now()}});
  }
  if (const absl::Status noted = state_.store->NoteLogsOf(notes); noted.ok()) {
    spdlog::warn("the logs of {} jobs are not brought to their store, {} the first: {}",
                 notes.size(), turn.old.front().job, notes.front().second.reason);
    return turn.old.clear();
  }
  StateLock lock(state_);
  Queue& queue = queues_.at(key);
  queue.jobs.splice(queue.jobs.end(), turn.old);
}

}  // namespace tutti::service
