// UsageWatch has what the processes of a node use sent to the service: every second, by a thread of
// its own that reads and hands over and waits for nobody, so that neither output nor events nor the
// job wait for it. Where a sample takes long, as on a node of many processes, the next comes later:
// no more than 1/700 of a processor goes into them, and of GPUs, which are asked apart, 1/200.
// Whatever fails of it ends the samples alone.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/process/process_tree.h"
#include "spec/json/usage_sample.h"

namespace tutti::launch {

class UsageWatch {
 public:
  // Makes a sample of the ranks' processes, whose rates count from `began` on the first time.
  using Look =
      std::function<spec::UsageSample(const std::vector<RankLeader>&, absl::Duration began)>;
  // Looks by a UsageReader; `memory_share` is its own.
  static Look LookByReader(int64_t memory_share);
  // Says what the job's GPUs do. Null: it has none.
  using GpuLook = std::function<std::vector<spec::GpuUsage>()>;
  // Looks by a GpuReader, which the first look makes; `names` are its own.
  static GpuLook LookAtGpus(std::vector<std::string> names);

  // `delivery` outlives the object.
  UsageWatch(Look look, GpuLook gpus, Delivery* delivery);
  // Ends within a moment: a look that does not, as where the kernel does not answer, is left to
  // itself, and what it finds is dropped.
  ~UsageWatch();

  // Tells which ranks run. Call it again and again, by one thread: the first sample is made a
  // second after the first call, so that what ends within a moment pays nothing.
  void SetRanks(std::vector<RankLeader> ranks);

 private:
  // Shared is kept by the thread, too, which may outlive the object.
  struct Shared {
    absl::Mutex mutex;
    std::vector<RankLeader> ranks ABSL_GUARDED_BY(mutex);
    Delivery* delivery ABSL_GUARDED_BY(mutex);  // null: the thread is to end
    bool ended ABSL_GUARDED_BY(mutex) = false;
  };
  static void Loop(const Look& look, GpuLook gpus, absl::Duration began, Shared& shared);

  Look look_;
  GpuLook gpus_;
  std::optional<absl::Duration> began_;  // of who calls SetRanks
  bool tried_ = false;                   // to start the thread
  const std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace tutti::launch
