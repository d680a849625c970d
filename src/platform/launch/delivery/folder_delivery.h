// FolderDelivery delivers by the allocation's folder, which this node shares with the service: what
// is in the spool is flushed and then named in spool/written.json; the collector's answers are in
// spool/acknowledged.json (folder_exchange.h). Nothing tells of another machine's writes on a
// network disk, so both are looked at every quarter of a second, the answers only while one is
// awaited. If the folder itself has been removed nobody will answer, and the allocation is gone.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>

#include "base/threads/retry_pause.h"
#include "platform/launch/delivery/delivery.h"
#include "platform/launch/delivery/folder_exchange.h"
#include "platform/launch/node/node_folders.h"

namespace tutti::launch {

class FolderDelivery final : public Delivery {
 public:
  // `removed_after`: how long the folder must be seen to be missing, while what it lay in is there.
  FolderDelivery(const spec::LaunchPlan& plan, EventLog* events, Spool* spool, Wakeup* news,
                 absl::Duration removed_after = absl::Minutes(1));
  ~FolderDelivery() override;

  void Begin() override;
  absl::StatusOr<std::filesystem::path> FetchCode(const std::filesystem::path& file) override;
  absl::Status FetchProgram(const std::string& snapshot,
                            const std::filesystem::path& file) override;
  void AbandonCode() override;
  absl::StatusOr<SecretValues> FetchSecrets() override;
  absl::StatusOr<TrackedRun> FetchRun(base::Deadline deadline) override;
  absl::Status SendResults(const std::vector<Result>& files, Patience patience) override;

 private:
  // The collector says it of all that it delivers together.
  absl::Duration put_off(Stream) const override { return absl::Nanoseconds(put_off_.load()); }
  // Is the thread: publishes what is written and reads the answers, until the object goes.
  void DeliveryLoop();
  absl::Status PublishWritten();
  absl::Status SyncWhatIsNewIn(const Written& now);
  absl::Status Publish(const Written& now);
  absl::Status ListResults(const std::vector<Result>& files, Patience patience);
  void BeatIfQuiet();
  bool AwaitsAnswer();
  void ReadAcknowledged();
  void LookForFolder();
  // Whether the service has not yet got the last list of results.
  bool HasResultsToSend() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const NodeFolders folders_;
  const bool has_others_;
  const absl::Duration removed_after_;
  const absl::Duration beat_;
  base::RetryPause pauses_;  // of one beat each; these eight are the thread's
  std::optional<Written> published_;
  absl::Duration published_at_;
  absl::Duration pause_;  // before the next sign of life
  int64_t beats_ = 0;
  std::string last_answer_;
  std::atomic<int64_t> put_off_ = absl::ToInt64Nanoseconds(kNeverPutOff);
  int missed_ = 0;  // looks at the folder, one after another, that have not found it
  absl::Duration missed_since_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool code_abandoned_ ABSL_GUARDED_BY(mutex_) = false;
  bool code_awaited_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t results_lists_ ABSL_GUARDED_BY(mutex_) = 0;  // that SendResults has written
  Acknowledged answer_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tutti::launch
