#include "platform/engine/deferred_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/threads/start_thread.h"

namespace tutti::engine {
namespace {

// Opening an engine takes at most this long where its folder answers.
constexpr absl::Duration kSlow = absl::Seconds(5);

constexpr absl::Duration kPatienceAtTheEnd = absl::Seconds(2);

}  // namespace

DeferredEngine::DeferredEngine(DeferredEngineOptions options, const base::Clock* clock)
    : state_(std::make_shared<State>(std::move(options), clock)),
      patience_(base::Deadline::After(state_->options.patience)) {}

DeferredEngine::~DeferredEngine() {
  if (!first_try_.joinable()) return;
  bool has_ended = false;
  {
    absl::MutexLock lock(&state_->mutex);
    has_ended = state_->mutex.AwaitWithTimeout(
        absl::Condition(state_.get(), &State::FirstTryHasEnded), kPatienceAtTheEnd);
    state_->left = true;
  }
  has_ended ? first_try_.join() : first_try_.detach();
}

absl::Status DeferredEngine::TryNow(absl::Duration patience) {
  first_try_ = base::StartThread([state = state_] { state->OpenIfDue().IgnoreError(); });
  if (!first_try_.joinable()) state_->OpenIfDue().IgnoreError();
  absl::MutexLock lock(&state_->mutex);
  state_->mutex.AwaitWithTimeout(absl::Condition(state_.get(), &State::FirstTryHasEnded), patience);
  return state_->failure;
}

std::string DeferredEngine::State::Reason() const {
  if (opening_since && clock->SinceBoot() - *opening_since > kSlow) {
    return "it is being opened, and its folder does not answer: is that on a server that is away?";
  }
  if (failure.ok()) return "it is being opened";
  return absl::StrCat(failure.message(), " (since ",
                      absl::FormatTime("%Y-%m-%d %H:%M UTC", since, absl::UTCTimeZone()),
                      "; it is tried again within ", absl::FormatDuration(options.longest_pause),
                      ")");
}

std::string DeferredEngine::WhyOutOfReach() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->engine == nullptr ? state_->Reason() : "";
}

absl::StatusOr<Engine*> DeferredEngine::Opened() const {
  absl::MutexLock lock(&state_->mutex);
  if (state_->engine == nullptr) return absl::UnavailableError(state_->Reason());
  return state_->engine.get();
}

absl::StatusOr<Engine*> DeferredEngine::State::OpenIfDue() {
  {
    absl::MutexLock lock(&mutex);
    const bool is_due = !opening_since && clock->SinceBoot() >= next_try;
    if (engine != nullptr) return engine.get();
    if (!is_due) return absl::UnavailableError(Reason());
    opening_since = clock->SinceBoot();
  }
  absl::StatusOr<std::unique_ptr<Engine>> opened = options.open();
  absl::MutexLock lock(&mutex);
  if (left) return absl::CancelledError("nobody waits for it any more");
  opening_since.reset();
  if (opened.ok()) {
    engine = *std::move(opened);
    return engine.get();
  }
  if (failure.ok()) since = clock->Now();
  failure = opened.status();
  next_try = clock->SinceBoot() + pause.Next();
  return absl::UnavailableError(Reason());
}

absl::StatusOr<Engine*> DeferredEngine::AwaitFirstTry(base::Deadline deadline) {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->mutex.AwaitWithTimeout(absl::Condition(state_.get(), &State::FirstTryHasEnded),
                                   base::Deadline::Sooner(deadline, patience_).Remaining());
  }
  return Opened();
}

absl::StatusOr<std::vector<Node>> DeferredEngine::ListNodes() {
  if (!state_->options.nodes.empty()) return state_->options.nodes;
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, AwaitFirstTry(patience_));
  return engine->ListNodes();
}

std::string DeferredEngine::WhyNeverOn(const spec::SlurmSettings& job, base::Deadline deadline) {
  const absl::StatusOr<Engine*> engine = AwaitFirstTry(deadline);
  return engine.ok() ? (*engine)->WhyNeverOn(job, deadline) : "";
}

std::string DeferredEngine::SharedFolder() const {
  const absl::StatusOr<Engine*> engine = Opened();
  return engine.ok() ? (*engine)->SharedFolder() : "";
}

absl::Status DeferredEngine::Start(const Allocation& allocation) {
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, Opened());
  return engine->Start(allocation);
}

absl::Status DeferredEngine::Stop(const std::string& allocation_id, absl::Duration grace) {
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, Opened());
  return engine->Stop(allocation_id, grace);
}

absl::Status DeferredEngine::StopPatiently(const std::string& allocation_id, absl::Duration grace) {
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, Opened());
  return engine->StopPatiently(allocation_id, grace);
}

absl::Status DeferredEngine::Kill(const std::string& allocation_id, int node_index) {
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, Opened());
  return engine->Kill(allocation_id, node_index);
}

absl::StatusOr<std::vector<AllocationState>> DeferredEngine::Observe() {
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, state_->OpenIfDue());
  return engine->Observe();
}

void DeferredEngine::Refresh() {
  if (const absl::StatusOr<Engine*> engine = Opened(); engine.ok()) (*engine)->Refresh();
}

absl::Status DeferredEngine::Release(const std::string& allocation_id) {
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, Opened());
  return engine->Release(allocation_id);
}

}  // namespace tutti::engine
