// MetricsFile writes the run's metrics as JSON lines (docs/formats/metrics.md), each appended whole
// by one write, so that a reader or a crash never sees half a line. Thread-compatible.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace tutti::train {

class MetricsFile {
 public:
  // Appends to each of `paths`; none: writes nothing. `clock` must outlive it.
  static absl::StatusOr<MetricsFile> Open(const std::vector<std::filesystem::path>& paths,
                                          const base::Clock& clock);

  // Adds "event" and "time" to `fields`, an object, and appends it. The first error; the other
  // files have it nonetheless.
  absl::Status Write(absl::string_view event, nlohmann::json fields);
  bool writes() const { return !files_.empty(); }

 private:
  struct File {
    std::filesystem::path path;
    base::UniqueFd fd;
  };
  explicit MetricsFile(const base::Clock& clock) : clock_(&clock) {}

  const base::Clock* clock_;
  std::vector<File> files_;
};

}  // namespace tutti::train
