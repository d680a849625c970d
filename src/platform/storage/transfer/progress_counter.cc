#include "platform/storage/transfer/progress_counter.h"

#include <thread>

#include "absl/synchronization/notification.h"
#include "base/threads/start_thread.h"

namespace tutti::storage {

void ProgressCounter::ReportDuring(const std::function<void()>& work,
                                   const ProgressListener& listener, absl::Duration interval) {
  absl::Notification ended;
  std::thread worker = base::StartThread([&] {
    work();
    ended.Notify();
  });
  if (!worker.joinable()) return work();
  int64_t told_objects = 0, told_bytes = 0;
  while (!ended.WaitForNotificationWithTimeout(interval)) {
    const StorageProgress now = Now();
    if (!listener || (now.objects == told_objects && now.bytes == told_bytes)) continue;
    listener(now);
    told_objects = now.objects;
    told_bytes = now.bytes;
  }
  worker.join();
}

}  // namespace tutti::storage
