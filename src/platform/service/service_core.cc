#include "platform/service/service_core.h"

#include <time.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/service/admission/disk_space.h"

namespace tutti::service {
namespace {

constexpr absl::Duration kIdle = absl::Seconds(5);

// Of this thread, which others that want the processor do not change.
absl::Duration ProcessorTime() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Open(ServiceOptions options, store::Store* store,
                                                       Engines engines, const base::Clock* clock) {
  auto service =
      std::make_unique<ServiceCore>(std::move(options), store, std::move(engines), clock);
  TUTTI_RETURN_IF_ERROR(service->Rebuild());
  return service;
}

ServiceCore::ServiceCore(ServiceOptions options, store::Store* store, Engines engines,
                         const base::Clock* clock)
    : state_(std::move(options), store, std::move(engines), clock) {
  table_.AddListener(&event_log_);
  table_.AddListener(&follower_);
  table_.AddListener(&launchers_);
  for (EventListener* const listener : state_.options.listeners) table_.AddListener(listener);
}

ServiceCore::~ServiceCore() { Stop(); }

absl::Status ServiceCore::Rebuild() {
  TUTTI_ASSIGN_OR_RETURN(std::vector<store::JobRecord> records, state_.store->NonTerminalJobs());
  StateLock lock(state_);
  const std::filesystem::path incoming = state_.options.directory / "incoming";
  state_.problems.Note("what an earlier service was receiving stays", base::RemoveTree(incoming));
  deletion_.RestoreInterrupted();
  for (store::JobRecord& record : records) {
    TUTTI_ASSIGN_OR_RETURN(LiveJob* const job, table_.Rebuild(std::move(record)));
    TUTTI_RETURN_IF_ERROR(flows_.Rebuild(*job));
  }
  TUTTI_ASSIGN_OR_RETURN(state_.nodes, state_.engines.local->ListNodes());
  return absl::OkStatus();
}

void ServiceCore::Run() {
  background_.Start();
  loop_ = std::thread([this] { Loop(); });
}

void ServiceCore::Stop() {
  {
    StateLock lock(state_);
    state_.stopping = true;
    state_.wake.SignalAll();
    state_.changed.SignalAll();
    follower_.WakeAll();
  }
  if (loop_.joinable()) loop_.join();
  background_.Stop();
}

void ServiceCore::Loop() {
  while (true) {
    Tick();
    StateLock lock(state_);
    const bool busy =
        !table_.live().empty() || !leaving_.all().empty() || !state_.local_engine_observed;
    if (!state_.loop_has_work && !state_.stopping) {
      state_.wake.WaitWithTimeout(&state_.mutex, busy ? observations_.Interval() : kIdle);
    }
    if (state_.stopping) return;
  }
}

void ServiceCore::Tick() {
  absl::MutexLock one_at_a_time(&state_.tick_mutex);
  const absl::Duration began = ProcessorTime();
  bool observe = false;
  {
    StateLock lock(state_);
    state_.loop_has_work = false;
    observe = observations_.IsDue();
  }
  const States states = observe ? ObserveEngines() : States();
  Effects effects;
  {
    StateLock lock(state_);
    if (observe) observations_.NoteObservation();
    TakeIn(states, effects);
    progress_.AdvanceAll(effects);
    flows_.AdvanceAll(effects);
    if (state_.local_engine_observed) scheduler_.Schedule(effects);
    cluster_queue_.HandOver(effects);
    if (observe) observations_.NoteWork(ProcessorTime() - began);
  }
  engine_calls_.Perform(effects);
}

ServiceCore::States ServiceCore::ObserveEngines() const {
  States states;
  states.emplace("local", state_.engines.local->Observe());
  for (const auto& [name, engine] : state_.engines.clusters) {
    states.emplace(name, engine->Observe());
  }
  return states;
}

void ServiceCore::TakeIn(const States& states, Effects& effects) {
  for (const auto& [compute, observed] : states) {
    const std::string where = compute == "local" ? "" : absl::StrCat(" of compute ", compute);
    state_.problems.Note(absl::StrCat("the engine", where, " cannot be observed"),
                         observed.status());
    if (observed.ok()) observer_.Observe(compute, *observed, effects);
  }
}

absl::StatusOr<JobStatus> ServiceCore::Cancel(absl::string_view id) {
  StateLock lock(state_);
  insertions_.Await(id);
  if (LiveJob* const job = table_.Find(id)) {
    TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, table_.Cancel(*job, kCancelAsked));
    return views_.StatusOf(record);
  }
  TUTTI_ASSIGN_OR_RETURN(const store::JobRecord record, state_.store->GetJob(id));
  return views_.StatusOf(record);
}

absl::Status ServiceCore::Delete(absl::string_view id) {
  StateLock lock(state_);
  return deletion_.Delete(id);
}

std::vector<std::string> ServiceCore::Problems() {
  std::vector<std::string> problems;
  for (const auto& [compute, why] : state_.engines.broken) {
    problems.push_back(absl::StrCat("compute ", compute, " cannot be used: ", why));
  }
  if (const absl::Status space = CheckSpace(state_.options.directory); !space.ok()) {
    problems.emplace_back(space.message());
  }
  StateLock lock(state_);
  for (std::string& line : state_.problems.Lines()) problems.push_back(std::move(line));
  return problems;
}

}  // namespace tutti::service
