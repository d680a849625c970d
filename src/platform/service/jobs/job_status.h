// JobStatus and JobSummary are a job as users see it, in full and in a list; EventPage has its
// past, StoredLogs what became of its logs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "platform/service/attempt/job_placement.h"
#include "platform/service/diagnosis/diagnosis.h"
#include "platform/store/store.h"

namespace tutti::service {

// What is said of when a waiting job starts: by then at the latest, or an estimate
// (scheduler::Wait says of which), or what its cluster has planned.
enum class StartIs { kNotKnown, kLatest, kEstimate, kPlan };

// Where a job stands that waits for nodes of this machine.
struct QueuePlace {
  struct Ahead {
    std::string id, display_name;
  };
  static constexpr size_t kMostNamed = 3;

  int64_t place = 1;         // from 1: so many less one are ahead, steps and trials included
  std::vector<Ahead> ahead;  // the first of them, kMostNamed at most
};

// A job as users see it.
struct JobStatus {
  store::JobRecord record;
  std::string reason;  // why it is in its state; of a queued one, what it waits for now
  std::optional<absl::Time> expected_start;
  StartIs start_is = StartIs::kNotKnown;
  std::optional<QueuePlace> queue;  // of a queued one whose place the service knows
  std::vector<std::string> nodes;
  std::vector<PlacedNode> shares;  // what it has of them, if it has not the whole
  std::vector<Failure> failures;
};

// Events of a job, the oldest first.
struct EventPage {
  std::vector<store::Event> events;
  int64_t before = 0;  // the event before which the others are; 0: there are none
};

// Where the logs of a job go that are brought to a store, and what became of it.
struct StoredLogs {
  std::string place;  // as users write it: azureml://datastores/NAME/paths/PATH
  store::LogsNote note;
};

// A job in a list of many: what a table shows of it.
struct JobSummary {
  static constexpr size_t kLongestCommand = 200;

  std::string id;
  int64_t sequence = 0;
  std::string display_name;
  std::string experiment_name;
  std::string
      command;  // at most kLongestCommand characters of its first line; empty: its jobs have
  store::JobState state = store::JobState::kQueued;
  std::string reason;  // as in JobStatus
  absl::Time created;
  std::optional<absl::Time> started;
  std::optional<absl::Time> ended;
  int node_count = 1;  // 0 of a pipeline or a sweep: its jobs have their own
  spec::Priority priority = spec::Priority::kNormal;
  std::optional<absl::Time> expected_start;
  StartIs start_is = StartIs::kNotKnown;
};

// The jobs that wait for nodes of a compute, steps and trials included.
struct ComputeQueue {
  struct Job {
    JobSummary summary;
    std::string parent, step;      // as in store::Job
    std::optional<int64_t> place;  // from 1; nothing: the cluster decides, and does not tell
  };

  std::string compute;
  int64_t count = 0;      // of all of them
  std::vector<Job> jobs;  // the first ones: by their place, or in order of submission
};

}  // namespace tutti::service
