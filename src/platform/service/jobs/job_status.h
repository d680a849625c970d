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

// A job as users see it.
struct JobStatus {
  store::JobRecord record;
  std::string reason;  // why it is in its state; of a queued one, what it waits for now
  std::optional<absl::Time> expected_start;
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
};

}  // namespace tutti::service
