#include "runtime/comm/negotiation/execution/executor.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>
#include <numeric>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "runtime/comm/lost_rank.h"
#include "runtime/comm/negotiation/execution/check_response.h"

namespace tutti::comm {

absl::Status ErrorOf(const Unit& unit) {
  if (unit.blamed >= 0) return ErrorAboutRank(unit.blamed, unit.code, unit.error);
  return absl::Status(unit.code, unit.error);
}

absl::Status ErrorOf(const End& end) {
  if (end.blamed >= 0) return ErrorAboutRank(end.blamed, end.code, end.text);
  return absl::Status(end.code, end.text);
}

Executor::Executor(std::shared_ptr<Communicator> world, absl::Duration timeout,
                   TimelineSlot* timeline, Events events)
    : rank_(world->rank()),
      timeout_(timeout),
      timeline_(timeline),
      events_(std::move(events)),
      device_(timeline) {
  auto team = std::make_unique<Team>();
  team->ranks.resize(world->size());
  std::iota(team->ranks.begin(), team->ranks.end(), 0);
  team->group = std::move(world);
  teams_[kWorldSet] = std::move(team);
  thread_ = std::thread([this] { Loop(); });
}

std::shared_ptr<Communicator> Executor::Leave() {
  if (!thread_.joinable()) return nullptr;
  End(absl::CancelledError("the negotiation has shut down"));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
  // Their memory and the subgroups go before the world.
  const std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<Communicator> world = teams_.at(kWorldSet)->group;
  while (!teams_.empty()) teams_.erase(std::prev(teams_.end()));
  return world;
}

void Executor::Push(Job job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(job));
  changed_.notify_all();
}

void Executor::End(const absl::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (end_.ok()) end_ = status;
}

bool Executor::Drain(base::Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, deadline.time_point(),
                             [this] { return queue_.empty() && !running_; });
}

uint64_t Executor::executed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return executed_;
}

bool Executor::busy() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return running_ || !queue_.empty();
}

std::vector<int> Executor::ProcessSets() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<int> sets;
  for (const auto& [set, team] : teams_) sets.push_back(set);
  return sets;
}

absl::StatusOr<std::vector<int>> Executor::RanksOf(int set) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = teams_.find(set);
  if (found == teams_.end()) {
    return absl::NotFoundError(absl::StrCat("there is no process set ", set));
  }
  return found->second->ranks;
}

bool Executor::LeadsASet() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(teams_.begin(), teams_.end(),
                     [this](const auto& entry) { return entry.second->ranks[0] == rank_; });
}

std::optional<std::pair<std::string, absl::Duration>> Executor::Running() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!running_) return std::nullopt;
  return std::pair(running_name_, running_since_);
}

absl::Status Executor::UseDevice(int device) { return device_.Use(device); }

// Until there is a job; nullopt: there will be none. Meanwhile it watches what is on a GPU.
std::optional<Executor::Job> Executor::Next(std::unique_lock<std::mutex>& lock) {
  constexpr auto kGlance = std::chrono::microseconds(500);
  while (device_.busy() && queue_.empty()) {
    running_ = true;
    changed_.wait_for(lock, kGlance, [this] { return !queue_.empty(); });
    lock.unlock();
    WatchDevice();
    lock.lock();
    running_ = device_.busy();
    changed_.notify_all();
  }
  changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
  if (queue_.empty()) return std::nullopt;
  Job job = std::move(queue_.front());
  queue_.pop_front();
  return job;
}

void Executor::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (auto next = Next(lock)) {
    Job& job = *next;
    running_ = true;
    for (const auto& task : job.tasks) {
      if (task == nullptr) continue;
      running_name_ = task->submission.request.name;
      running_since_ = task->since;
      break;
    }
    lock.unlock();
    Execute(job);
    if (device_.busy()) WatchDevice();
    lock.lock();
    running_ = device_.busy();
    ++executed_;
    changed_.notify_all();
    lock.unlock();
    events_.on_executed();
    lock.lock();
  }
}

void Executor::Finish(Job& job, const absl::Status& status) {
  for (const auto& task : job.tasks) {
    if (task != nullptr && !task->operation->Done()) task->operation->Finish(status);
  }
}

void Executor::Execute(Job& job) {
  if (const auto timeline = timeline_->get()) {
    for (const auto& task : job.tasks) {
      if (task != nullptr) timeline->End(task->submission.request.name);  // of the queue
    }
  }
  const std::vector<Unit>& units = job.response.units;
  if (!units.empty() && units[0].code != absl::StatusCode::kOk) {
    return Finish(job, ErrorOf(units[0]));
  }
  absl::Status status;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    status = end_;
  }
  if (status.ok()) status = RunGuarded(job);
  Finish(job, status);
}

// Memory or a thread that is not there ends the negotiation of this rank, not its process.
absl::Status Executor::RunGuarded(Job& job) {
  try {
    return Run(job);
  } catch (const std::bad_alloc&) {
    return Abandon(absl::ResourceExhaustedError("out of memory in a collective"));
  } catch (const std::length_error&) {
    return Abandon(absl::ResourceExhaustedError("more than any memory in a collective"));
  } catch (const std::system_error& error) {
    return Abandon(absl::ResourceExhaustedError(absl::StrCat("in a collective: ", error.what())));
  }
}

absl::Status Executor::Abandon(const absl::Status& error) {
  End(error);
  events_.on_failed(error);
  return error;
}

absl::Status Executor::Disbelieve(absl::string_view fault) {
  return Abandon(ErrorAboutRank(0, absl::StatusCode::kInternal, absl::StrCat("rank 0: ", fault)));
}

absl::StatusOr<Team*> Executor::TeamOf(const Job& job) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = teams_.find(job.response.set);
  if (found == teams_.end()) return absl::InternalError("a response in no process set");
  Team* const team = found->second.get();
  TUTTI_RETURN_IF_ERROR(CheckResponse(job.response, job.tasks, job.joined, team->ranks, rank_));
  return team;
}

absl::Status Executor::Run(Job& job) {
  const absl::StatusOr<Team*> team = TeamOf(job);
  if (!team.ok()) return Disbelieve(team.status().message());
  const Request& request =
      job.tasks[0] != nullptr ? job.tasks[0]->submission.request : job.response.units[0].request;
  for (const auto& task : job.tasks) {
    if (task != nullptr) task->operation->set_value(job.response.value);
  }
  if (request.kind == Kind::kJoin) return absl::OkStatus();
  if (request.kind == Kind::kAddSet) return AddSet(job);
  if (request.kind == Kind::kRemoveSet) return RemoveSet(request.root);
  if (request.device) return RunOnDevice(job, **team);
  const auto timeline = timeline_->get();
  const absl::Status status =
      RunResponse(**team, job.response, job.tasks, timeline.get(), base::Deadline::After(timeout_));
  return status.ok() ? status : Judge(status, **team);
}

// The operations are done when the GPU is: WatchDevice ends them.
absl::Status Executor::RunOnDevice(Job& job, Team& team) {
  const absl::Status status =
      device_.Issue(team, job.response, job.tasks, base::Deadline::After(timeout_));
  if (status.ok() || !team.device_fault.ok()) return status;
  return Judge(status, team);
}

void Executor::WatchDevice() {
  device_.Look([this](const absl::Status& error, const Team& team) { return Judge(error, team); });
}

void Executor::AwaitDevice() {
  while (device_.busy()) {
    WatchDevice();
    std::this_thread::yield();
  }
}

absl::Status Executor::RemoveSet(int set) {
  AwaitDevice();  // it may be on what goes
  std::unique_ptr<Team> removed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = teams_.find(set);
    if (set != kWorldSet && found != teams_.end()) {
      removed = std::move(found->second);
      teams_.erase(found);
    }
  }
  if (removed == nullptr) return Disbelieve("it removes no process set");
  return absl::OkStatus();
}

absl::Status Executor::AddSet(const Job& job) {
  auto team = std::make_unique<Team>();
  team->ranks = job.tasks[0]->submission.request.ranks;
  const int64_t number = job.response.value;
  Team* world = nullptr;
  bool is_new = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    world = teams_.at(kWorldSet).get();
    is_new = number > 0 && number <= INT32_MAX && !teams_.contains(static_cast<int>(number));
  }
  if (!is_new) return Disbelieve("it adds a process set by a number that is no new one");
  if (std::binary_search(team->ranks.begin(), team->ranks.end(), rank_)) {
    auto group = world->group->NewGroup(team->ranks, base::Deadline::After(timeout_));
    if (!group.ok()) return Judge(group.status(), *world);
    team->group = *std::move(group);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  teams_[static_cast<int>(number)] = std::move(team);
  return absl::OkStatus();
}

// Whoever is lost is lost to the world too, which names it for all alike; that may take a moment
// longer. What is an argument's fault ends nothing.
absl::Status Executor::Judge(absl::Status error, const Team& team) {
  if (absl::IsInvalidArgument(error)) return error;
  const absl::Status judgement = events_.await_judgement(absl::Seconds(1));
  const auto lost = LostRank(error);
  if (!judgement.ok()) {
    error = judgement;
  } else if (lost.has_value() && static_cast<size_t>(*lost) < team.ranks.size()) {
    error = ErrorAboutRank(team.ranks[*lost], error.code(), error.message());
  }
  End(error);
  events_.on_failed(error);
  return error;
}

}  // namespace tutti::comm
