// MetricsToRun logs what tutti-train writes to its metrics file (docs/formats/metrics.md) to its
// job's run in MLflow's tracking: from its `start` line on, whose recipe becomes the params. A
// metric or a param that MLflow refuses, such as one whose name has brackets, is left out, and no
// other with it. Lines of other programs are left out: those log to the run themselves. What is
// logged twice changes nothing, so that a service that begins anew reads the file from its
// beginning. Not thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "platform/service/logs/growing_file.h"
#include "platform/service/logs/reported_line.h"
#include "platform/tracking/store/tracking_store.h"

namespace tutti::service {

class MetricsToRun {
 public:
  // `store` outlives it.
  MetricsToRun(const std::filesystem::path& file, std::string run, tracking::TrackingStore* store)
      : lines_(file), run_(std::move(run)), store_(store) {}

  // Logs what has come, all of it with `to_the_end`. After an error what was read is lost: begin
  // with another object.
  absl::Status ReadOn(bool to_the_end);

 private:
  void Take(absl::string_view line);
  void TakeStart(absl::string_view line);
  void LogMetrics();
  void Log(std::vector<tracking::LogRequest> requests);

  GrowingFile lines_;
  const std::string run_;
  tracking::TrackingStore* const store_;
  bool began_ = false;  // the `start` line has come
  ReportedLine line_;
  tracking::Batch batch_;  // metrics that are not logged yet
  absl::Status status_;
};

}  // namespace tutti::service
