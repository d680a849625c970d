#include "platform/launch/usage/usage_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/time/clock.h"
#include "base/deadline.h"
#include "base/threads/start_thread.h"
#include "platform/launch/usage/gpu_reader.h"
#include "platform/launch/usage/usage_reader.h"

namespace tutti::launch {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(1);
constexpr absl::Duration kFirst = absl::Milliseconds(900);
constexpr absl::Duration kPatienceWithLastLook = absl::Seconds(1);  // under way at the end
constexpr double kRestPerLook = 700;  // times a look's processor time, between two
constexpr double kRestPerGpuLook = 200;
constexpr absl::Duration kLongestGpuRest = absl::Seconds(10);  // what is older is not of now

// Looks at GPUs as rarely as what it costs allows, and repeats in between what it has seen. Each
// value is a call to the driver: those of a node's GPUs are not to make all its samples rare.
class RestingGpuLook {
 public:
  explicit RestingGpuLook(UsageWatch::GpuLook look) : look_(std::move(look)) {}

  std::vector<spec::GpuUsage> operator()() {
    const absl::Duration now = base::SteadyNow();
    if (look_ == nullptr || now < next_) return last_;
    const absl::Duration before = ProcessorTime();
    last_ = look_();
    // The first look opens the library, once.
    if (!std::exchange(is_first_, false)) {
      next_ = now + std::min(kLongestGpuRest, kRestPerGpuLook * (ProcessorTime() - before));
    }
    return last_;
  }

 private:
  const UsageWatch::GpuLook look_;
  bool is_first_ = true;
  absl::Duration next_ = -absl::InfiniteDuration();
  std::vector<spec::GpuUsage> last_;
};

}  // namespace

UsageWatch::Look UsageWatch::LookByReader(int64_t memory_share) {
  return [memory_share, reader = std::shared_ptr<UsageReader>()](
             const std::vector<RankLeader>& ranks, absl::Duration began) mutable {
    if (reader == nullptr) reader = std::make_shared<UsageReader>(memory_share, began);
    return reader->Read(ranks, base::SteadyNow(), absl::Now());
  };
}

UsageWatch::GpuLook UsageWatch::LookAtGpus(std::vector<std::string> names) {
  if (names.empty()) return nullptr;
  return [names = std::move(names), reader = std::shared_ptr<GpuReader>()]() mutable {
    if (reader == nullptr) reader = std::make_shared<GpuReader>(names);
    return reader->Read();
  };
}

UsageWatch::UsageWatch(Look look, GpuLook gpus, Delivery* delivery)
    : look_(std::move(look)), gpus_(std::move(gpus)), shared_(std::make_shared<Shared>()) {
  absl::MutexLock lock(&shared_->mutex);
  shared_->delivery = delivery;
}

UsageWatch::~UsageWatch() {
  if (!thread_.joinable()) return;
  bool ended = false;
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->delivery = nullptr;
    ended =
        shared_->mutex.AwaitWithTimeout(absl::Condition(&shared_->ended), kPatienceWithLastLook);
  }
  ended ? thread_.join() : thread_.detach();
}

void UsageWatch::SetRanks(std::vector<RankLeader> ranks) {
  const absl::Duration now = base::SteadyNow();
  if (!began_ && !ranks.empty()) began_ = now;
  {
    absl::MutexLock lock(&shared_->mutex);
    shared_->ranks = std::move(ranks);
  }
  if (tried_ || !began_ || now - *began_ < kFirst) return;
  tried_ = true;  // where the job has taken all threads that there may be, it goes on without
  thread_ = base::StartThread([look = std::move(look_), gpus = std::move(gpus_), began = *began_,
                               shared = shared_]() mutable {
    try {
      Loop(look, std::move(gpus), began, *shared);
    } catch (const std::exception& error) {
      spdlog::warn("what the processes use is measured no more: {}", error.what());
    }
    absl::MutexLock lock(&shared->mutex);
    shared->ended = true;
  });
}

void UsageWatch::Loop(const Look& look, GpuLook gpus, absl::Duration began, Shared& shared) {
  RestingGpuLook look_at_gpus(std::move(gpus));
  absl::Duration pause = absl::ZeroDuration();
  absl::Duration next = base::SteadyNow();
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(shared.mutex) {
    return shared.delivery == nullptr;
  };
  while (true) {
    absl::Duration before = ProcessorTime();
    std::vector<RankLeader> ranks;
    bool wanted = false;
    {
      absl::MutexLock lock(&shared.mutex);
      if (shared.mutex.AwaitWithTimeout(absl::Condition(&is_over), pause)) return;
      ranks = shared.ranks;
      wanted = shared.delivery->WantsUsage();
    }
    if (wanted) {
      spec::UsageSample sample = look(ranks, began);
      const absl::Duration before_gpus = ProcessorTime();
      sample.gpus = look_at_gpus();
      before += ProcessorTime() - before_gpus;
      std::string line = spec::ToJson(sample);
      absl::MutexLock lock(&shared.mutex);
      if (is_over()) return;
      shared.delivery->OfferUsage(std::move(line));
    }
    next = std::max(next + std::max(kPeriod, kRestPerLook * (ProcessorTime() - before)),
                    base::SteadyNow());
    pause = next - base::SteadyNow();
  }
}

}  // namespace tutti::launch
