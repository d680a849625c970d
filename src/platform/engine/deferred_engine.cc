#include "platform/engine/deferred_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/threads/start_thread.h"

namespace tutti::engine {
namespace {

// What opening an engine takes at most where its folder answers.
constexpr absl::Duration kSlow = absl::Seconds(5);

}  // namespace

DeferredEngine::DeferredEngine(DeferredEngineOptions options, const base::Clock* clock)
    : options_(std::move(options)),
      clock_(clock),
      patience_(base::Deadline::After(options_.patience)),
      pause_(options_.first_pause, options_.longest_pause) {}

DeferredEngine::~DeferredEngine() {
  if (first_try_.joinable()) first_try_.join();
}

absl::Status DeferredEngine::TryNow(absl::Duration patience) {
  first_try_ = base::StartThread([this] { OpenIfDue().IgnoreError(); });
  if (!first_try_.joinable()) OpenIfDue().IgnoreError();
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(this, &DeferredEngine::FirstTryHasEnded), patience);
  return failure_;
}

std::string DeferredEngine::Reason() const {
  if (opening_since_ && clock_->SinceBoot() - *opening_since_ > kSlow) {
    return "it is being opened, and its folder does not answer: is that on a server that is away?";
  }
  if (failure_.ok()) return "it is being opened";
  return absl::StrCat(failure_.message(), " (since ",
                      absl::FormatTime("%Y-%m-%d %H:%M UTC", since_, absl::UTCTimeZone()),
                      "; it is tried again within ", absl::FormatDuration(options_.longest_pause),
                      ")");
}

std::string DeferredEngine::WhyOutOfReach() const {
  absl::MutexLock lock(&mutex_);
  return engine_ == nullptr ? Reason() : "";
}

absl::StatusOr<Engine*> DeferredEngine::Opened() const {
  absl::MutexLock lock(&mutex_);
  if (engine_ == nullptr) return absl::UnavailableError(Reason());
  return engine_.get();
}

absl::StatusOr<Engine*> DeferredEngine::OpenIfDue() {
  {
    absl::MutexLock lock(&mutex_);
    const bool is_due = !opening_since_ && clock_->SinceBoot() >= next_try_;
    if (engine_ != nullptr) return engine_.get();
    if (!is_due) return absl::UnavailableError(Reason());
    opening_since_ = clock_->SinceBoot();
  }
  absl::StatusOr<std::unique_ptr<Engine>> opened = options_.open();
  absl::MutexLock lock(&mutex_);
  opening_since_.reset();
  if (opened.ok()) {
    engine_ = *std::move(opened);
    return engine_.get();
  }
  if (failure_.ok()) since_ = clock_->Now();
  failure_ = opened.status();
  next_try_ = clock_->SinceBoot() + pause_.Next();
  return absl::UnavailableError(Reason());
}

absl::StatusOr<Engine*> DeferredEngine::AwaitFirstTry(base::Deadline deadline) {
  {
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(this, &DeferredEngine::FirstTryHasEnded),
                            base::Deadline::Sooner(deadline, patience_).Remaining());
  }
  return Opened();
}

absl::StatusOr<std::vector<Node>> DeferredEngine::ListNodes() {
  if (!options_.nodes.empty()) return options_.nodes;
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

absl::Status DeferredEngine::Kill(const std::string& allocation_id, int node_index) {
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, Opened());
  return engine->Kill(allocation_id, node_index);
}

absl::StatusOr<std::vector<AllocationState>> DeferredEngine::Observe() {
  TUTTI_ASSIGN_OR_RETURN(Engine* const engine, OpenIfDue());
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
