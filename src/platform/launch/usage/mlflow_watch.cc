#include "platform/launch/usage/mlflow_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/deadline.h"
#include "base/threads/start_thread.h"
#include "platform/launch/environment/mlflow_stores.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kBetweenMlflowLooks = absl::Seconds(2);
constexpr int kRestPerMlflowLook = 100;  // times what a look takes, between two

}  // namespace

MlflowWatch::MlflowWatch(const spec::LaunchPlan& plan, Spool* spool, Delivery* delivery)
    : spool_(spool), delivery_(delivery) {
  for (int i = 0; i < plan.node().process_count; ++i) {
    stores_.emplace_back(MlflowStoreOf(plan, plan.node().first_rank + i));
    // The values that came over from an earlier attempt have been sent by it.
    if (!plan.former_directory.empty()) stores_.back().SkipWhatIsThere();
  }
}

MlflowWatch::~MlflowWatch() { Stop(); }

void MlflowWatch::Look() {
  const absl::Duration now = base::SteadyNow();
  first_look_ = std::min(first_look_, now + kBetweenMlflowLooks);
  if (tried_ || now < first_look_) return;
  tried_ = true;  // where the job has taken all threads that there may be, it goes on without
  thread_ = base::StartThread([this] { Loop(); });
}

void MlflowWatch::End() {
  Stop();
  ReadOn();
}

void MlflowWatch::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void MlflowWatch::Loop() {
  while (true) {
    const absl::Duration began = base::SteadyNow();
    ReadOn();
    const absl::Duration took = base::SteadyNow() - began;
    absl::MutexLock lock(&mutex_);
    const absl::Duration pause = std::max(kBetweenMlflowLooks, took * kRestPerMlflowLook);
    if (mutex_.AwaitWithTimeout(absl::Condition(&ending_), pause)) return;
  }
}

void MlflowWatch::ReadOn() {
  const std::shared_ptr<const base::TextMask> mask = spool_->mask();
  for (size_t i = 0; i < stores_.size() && !failed_; ++i) {
    const std::string lines = stores_[i].NewLines();
    if (lines.empty()) continue;
    const absl::Status kept =
        spool_->Mlflow(static_cast<int>(i)).Append(mask == nullptr ? lines : mask->Hide(lines));
    failed_ = !kept.ok();
    if (failed_) spdlog::warn("what MLflow logs is seen at the end alone: {}", kept.ToString());
    delivery_->Wake();
  }
}

}  // namespace tutti::launch
