// MlflowWatch has what the ranks of a node log in their MLflow stores (environment/mlflow_stores.h)
// sent to the service while they run: as the `mlflow` stream of each rank, by a thread of its own
// that looks every two seconds, and more rarely where a look takes long. Short jobs have one look,
// at their end. Whatever fails of it ends the values alone: they are in the results all the same.
#pragma once

#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/node/spool.h"
#include "platform/mlflow/store_follower.h"
#include "spec/json/launch_plan.h"

namespace tutti::launch {

class MlflowWatch {
 public:
  // `spool` and `delivery` outlive the object. To be made when outputs are in place.
  MlflowWatch(const spec::LaunchPlan& plan, Spool* spool, Delivery* delivery);
  ~MlflowWatch();
  MlflowWatch(const MlflowWatch&) = delete;
  MlflowWatch& operator=(const MlflowWatch&) = delete;

  // Tells that the ranks run. Call it again and again, by one thread: it begins to look two seconds
  // after the first call.
  void Look();
  // Looks once more, when no rank runs any more: all that was logged is in the spool then.
  void End();

 private:
  void Loop();
  void Stop();
  void ReadOn();

  Spool* const spool_;
  Delivery* const delivery_;
  std::vector<mlflow::StoreFollower> stores_;  // by local rank; of one thread at a time
  bool failed_ = false;                        // likewise
  absl::Duration first_look_ = absl::InfiniteDuration();
  bool tried_ = false;  // to start the thread
  absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tutti::launch
