#include "runtime/comm/negotiation/negotiation_engine.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "runtime/comm/lost_rank.h"
#include "runtime/comm/rendezvous/wire/codec.h"
#include "runtime/comm/rendezvous/wire/control_message.h"

namespace tutti::comm {
namespace {

CoordinatorOptions ForCoordinator(const NegotiationOptions& options, int size,
                                  absl::Duration peer_timeout) {
  CoordinatorOptions result;
  result.size = size;
  result.fusion_bytes = options.tuning.fusion_bytes;
  result.cycle_time = options.tuning.cycle_time;
  result.cache_capacity = options.cache_capacity;
  result.stall = options.stall;
  result.stall.peer_timeout = peer_timeout;
  return result;
}

// Others than rank 0 watch it alone; who is late is told by it.
StallOptions ForWatch(absl::Duration peer_timeout) {
  return {absl::ZeroDuration(), absl::ZeroDuration(), peer_timeout};
}

absl::Duration PeerTimeoutOf(Control* control) {
  return control != nullptr ? control->peer_timeout() : absl::Seconds(4);
}

}  // namespace

std::unique_ptr<Negotiation> Negotiation::Start(std::shared_ptr<Communicator> world,
                                                NegotiationOptions options) {
  return std::make_unique<Engine>(std::move(world), std::move(options));
}

absl::Duration Engine::Now() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

Engine::Engine(std::shared_ptr<Communicator> world, NegotiationOptions options)
    : rank_(world->rank()),
      size_(world->size()),
      placement_(world->placement()),
      group_(world),
      options_(std::move(options)),
      control_(world->control()),
      peer_timeout_(PeerTimeoutOf(control_)),
      watch_(ForWatch(peer_timeout_), 1),
      submissions_(options_.cache_capacity),
      tuning_(options_.tuning) {
  if (rank_ == 0) {
    CoordinatorOptions coordinator = ForCoordinator(options_, size_, peer_timeout_);
    coordinator.on_announced = [this](const std::string& tensor, int rank) {
      if (const auto timeline = timeline_.get()) timeline->Mark(tensor, absl::StrCat(rank));
    };
    coordinator_ = std::make_unique<Coordinator>(coordinator);
    if (options_.autotune) tuner_.emplace(options_.tuner, options_.tuning);
    if (!options_.autotune_log.empty()) {
      tuner_log_.open(options_.autotune_log);
      tuner_log_ << "fusion_bytes,cycle_ms,bytes_per_second,result\n";
    }
  }
  Executor::Events events;
  events.on_executed = [this] {
    if (rank_ != 0 && !executor_->LeadsASet()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    outbox_.executed = executor_->executed();
    WakeThread();
  };
  events.on_failed = [this](const absl::Status& error) { End(error); };
  events.await_judgement = [this](absl::Duration patience) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_until(lock, base::Deadline::After(patience).time_point(),
                        [this] { return !end_.ok(); });
    return end_;
  };
  executor_ = std::make_unique<Executor>(std::move(world), options_.collective_timeout, &timeline_,
                                         std::move(events));
  thread_ = std::thread([this] { RunThread(); });
  if (control_ != nullptr) control_->SetListener(this);
}

int Engine::WaitingNewcomers() const {
  const auto group = group_.lock();
  return group == nullptr ? 0 : group->WaitingNewcomers();
}

Tuning Engine::tuning() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return tuning_;
}

void Engine::OnPayload(int from, const std::string& payload) {
  absl::Status fault;
  if (rank_ == 0) {
    absl::StatusOr<Report> report = ReadReport(payload);
    if (report.ok()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      inbox_.emplace_back(from, *std::move(report));
      return WakeThread();
    }
    fault = report.status();
  } else {
    absl::StatusOr<Orders> orders = ReadOrders(payload);
    if (orders.ok()) return Follow(*std::move(orders));
    fault = orders.status();
  }
  End(ErrorAboutRank(from, absl::StatusCode::kInternal,
                     absl::StrCat("rank ", from, ": ", fault.message())));
}

// What rank 0 has decided, in its order.
void Engine::Follow(Orders orders) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!orders.responses.empty() && mark_cycles_) {
      if (const auto timeline = timeline_.get()) timeline->Mark("", "CYCLE_START");
    }
    for (Response& response : orders.responses) Queue(std::move(response));
    for (const uint32_t id : orders.unknown) {
      for (Announcement& announcement : submissions_.InFull(id)) {
        outbox_.announcements.push_back(std::move(announcement));
        WakeThread();
      }
    }
    leave_ack_ = leave_ack_ || orders.leave_ack;
    changed_.notify_all();
  }
  ReportStalls(std::move(orders.stalls));
  if (orders.end.has_value()) Refuse(ErrorOf(*orders.end));
}

void Engine::Queue(Response response) {
  Executor::Job job;
  const auto timeline = timeline_.get();
  job.joined = submissions_.Joined(response.set);
  for (const Unit& unit : response.units) {
    job.tasks.push_back(submissions_.Take(response.set, unit));
    if (timeline == nullptr || job.tasks.back() == nullptr) continue;
    timeline->End(job.tasks.back()->submission.request.name);
    timeline->Begin(job.tasks.back()->submission.request.name, "QUEUE");
  }
  job.response = std::move(response);
  executor_->Push(std::move(job));
}

void Engine::ReportStalls(std::vector<Stall> stalls) {
  if (stalls.empty()) return;
  callbacks_.Add([this, stalls = std::move(stalls)] {
    for (const Stall& stall : stalls) {
      const bool is_news_here = rank_ == 0 || stall.silent == 0;
      if (options_.log_stalls && is_news_here) spdlog::warn("{}", stall.ToString());
      if (options_.on_stall) options_.on_stall(stall);
    }
  });
}

// All are done before the first callback begins.
void Engine::Finish(std::vector<std::unique_ptr<Task>> tasks, const absl::Status& status) {
  for (const auto& task : tasks) {
    if (auto then = task->operation->Settle(status)) callbacks_.Add(std::move(then));
  }
}

void Engine::End(const absl::Status& status) {
  executor_->End(status);
  Refuse(status);
}

void Engine::Refuse(const absl::Status& status) {
  std::vector<std::unique_ptr<Task>> tasks;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (end_.ok()) end_ = status;
    tasks = submissions_.TakeAll();
    changed_.notify_all();
  }
  Finish(std::move(tasks), status);
}

absl::Status Engine::Shutdown() {
  const bool stopped = Stop();
  world_.reset();
  return stopped ? absl::OkStatus() : absl::DeadlineExceededError("a collective did not end");
}

std::shared_ptr<Communicator> Engine::GiveBack() {
  Stop();
  return std::move(world_);
}

// What all ranks agreed on before rank 0 knew that this one leaves is told before its leave is
// confirmed, and the others run it, counting on this one: nothing is cancelled until then.
void Engine::AwaitLeaveAck() {
  std::vector<std::unique_ptr<Task>> cancelled;
  bool answered = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    answered = changed_.wait_until(lock, base::Deadline::After(peer_timeout_).time_point(),
                                   [this] { return leave_ack_ || !end_.ok(); });
    if (answered) cancelled = submissions_.TakeAll();
  }
  Finish(std::move(cancelled), absl::CancelledError("this rank has shut down"));
  if (!answered) End(absl::CancelledError("this rank has shut down, unanswered by rank 0"));
}

// False when a collective did not end.
bool Engine::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::exchange(leaving_, true)) return true;
    outbox_.leaves = true;
    WakeThread();
  }
  AwaitLeaveAck();
  const bool drained = executor_->Drain(base::Deadline::After(options_.collective_timeout));
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    WakeThread();
  }
  thread_.join();
  if (control_ != nullptr) control_->SetListener(nullptr);
  world_ = executor_->Leave();
  callbacks_.Close();
  StopTimeline().IgnoreError();
  return drained;
}

}  // namespace tutti::comm
