// JobUsage keeps what the processes of a placed job use, as its launchers tell it, and says it to
// whoever asks: from memory; its files lie in the folder `usage` beside the job's logs
// (node_history.h). Samples may be lost and never hold the job up: what cannot be written is passed
// over. Who asks holds up the samples of one node at a time, for as long as it takes to copy them.
// Thread-safe; Load, Save and Close touch the disk, one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "platform/service/usage/node_history.h"
#include "platform/service/usage/usage_table.h"
#include "spec/json/usage_sample.h"

namespace tutti::service {

// The folder of a job's usage, in the job's own.
inline constexpr char kUsageFolder[] = "usage";

struct UsageQuery {
  std::optional<int> rank;  // this one and its node alone
  // Each resolution has so many; without it as many as an answer has room for, but at most 60.
  std::optional<size_t> points;
};

struct JobUsageView {
  struct Node {
    std::string name;  // "": not known any more
    int number = 0, first_rank = 0, ranks = 0;
    UsageTable recent{0}, whole{0};
    std::optional<absl::Duration> age;  // of the last sample, of a job that has its nodes
  };
  bool live = false;  // the job has its nodes
  std::vector<Node> nodes;
  std::vector<std::string> problems;  // what is wrong now, a line each
  std::optional<double> gpus_busy;    // as UsageProblems has it

  // Makes it that of a job that has ended.
  void End();
};

// Says what all nodes of a job use now, by their last samples of the last half minute.
struct UsageNow {
  int nodes = 0;  // that have told it
  double cpu = 0, memory = 0;
  std::optional<double> memory_left;  // the least of all nodes
  // Of the job's GPUs, where any tell it: how many are busy, and bytes.
  std::optional<double> gpu_use, gpu_memory;
};

// Counts what all jobs that have nodes keep in memory, so that all of them have room.
struct UsageMemory {
  std::atomic<int64_t> values = 0, nodes = 0;
};

class JobUsage {
 public:
  // How many values an answer has at most: nodes and ranks, times columns, times points.
  static constexpr size_t kMostValues = 4'000'000;

  struct NodePlace {
    std::string name;
    int first_rank, ranks;
  };
  // `folder` is made with the first samples that are written. `memory`: of all jobs; null: this one
  // is alone.
  JobUsage(std::filesystem::path folder, std::vector<NodePlace> nodes,
           std::shared_ptr<UsageMemory> memory = nullptr);
  ~JobUsage();

  // Takes samples of a node, as of the service's clock, which says `now`. Before Begin or Load and
  // after Close they are passed over, and those of more than an hour ago. Returns whether Save is
  // due, and not again before it is done.
  bool Take(int node, std::vector<spec::UsageSample> samples, absl::Time now,
            absl::Duration since_boot);
  absl::StatusOr<JobUsageView> View(const UsageQuery& query, absl::Time now) const;
  UsageNow Now(absl::Time now) const;
  // Returns the bytes that the largest rank had at once; nothing if none was measured.
  std::optional<uint64_t> PeakMemory() const;

  // Takes samples from now on, of a job that has none yet.
  void Begin() { takes_ = true; }
  // The same of one that may have some: reads what an earlier service, or attempt on as many ranks,
  // has kept, and removes what is of nodes that had others. At most once.
  void Load();
  // Writes the spans that have ended since; what fails, or has no room, is written with the next.
  void Save(bool has_room);
  // Writes all there is, if there is room, and takes nothing any more.
  void Close(bool has_room);

  // Reads that of a job that has ended: a view without names. No nodes where there is none.
  static absl::StatusOr<JobUsageView> Read(const std::filesystem::path& folder,
                                           const UsageQuery& query);
  static std::optional<uint64_t> ReadPeakMemory(const std::filesystem::path& folder);

 private:
  struct Node {
    mutable absl::Mutex mutex;
    NodeHistory history ABSL_GUARDED_BY(mutex);

    explicit Node(NodeHistory with) : history(std::move(with)) {}
    NodeHistory Copy() const {
      absl::MutexLock lock(&mutex);
      return history;
    }
  };

  void Write(bool end);

  const std::filesystem::path folder_;
  const std::vector<NodePlace> places_;
  const std::shared_ptr<UsageMemory> memory_;
  NodeHistory::Rows rows_;
  int64_t values_ = 0;  // that it takes of memory_
  std::vector<std::unique_ptr<Node>> nodes_;
  std::atomic<bool> takes_ = false;
  absl::Mutex mutex_;
  absl::Duration saved_at_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool saves_ ABSL_GUARDED_BY(mutex_) = false;  // Save is due
};

}  // namespace tutti::service
