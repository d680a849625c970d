// FollowResult is what a follower of a job is told: state changes and lines of output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "platform/service/logs/job_logs.h"
#include "platform/store/store.h"

namespace tutti::service {

// One thing that a follower is told.
struct FollowItem {
  std::string cursor;  // what to send to get what comes after this item
  absl::Time time;
  std::optional<store::Event> event;  // a state change; else output:
  int rank = 0;
  LogStream stream = LogStream::kStdout;
  std::string text;  // without its newline
  bool partial =
      false;  // no newline came: the end of the output, a piece of a very long or a redrawn line
};

// Lines and state changes that follow each other.
struct LinesPage {
  std::vector<FollowItem> items;
  std::string before;  // the cursor of what stands before them; "" if nothing does
};

// What a follower is told of.
struct FollowFilter {
  // Lines of the streams metrics and mlflow. Without them the events of tutti-train that come once
  // in a while are told all the same (start, evaluation, checkpoint, result), and of the steps of a
  // batch the last, for a progress bar.
  bool reports = true;
};

struct FollowResult {
  std::vector<FollowItem> items;
  std::string cursor;  // what to send to get what comes after these and what was left out
  bool ended = false;  // the job has ended and these items are the last
  bool more = false;   // there is more already than these items, which may be none
};

}  // namespace tutti::service
