// EventFile writes scalars for TensorBoard: a file events.out.tfevents.* of TFRecords
// (docs/formats/metrics.md), each a tensorflow.Event, appended whole by one write.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/unique_fd.h"

namespace tutti::train {

struct Scalar {
  std::string tag;  // "loss", "evaluation/top1"
  double value = 0;
};

// Return serialized tensorflow.Event messages, as records: the file's first one, and one with
// scalars.
std::string VersionRecord(absl::Time time);
std::string ScalarsRecord(absl::Time time, int64_t step, std::span<const Scalar> scalars);

class EventFile {
 public:
  // Returns a new file in `folder`, which is made if need be. `clock` must outlive it.
  static absl::StatusOr<EventFile> Create(const std::filesystem::path& folder,
                                          const base::Clock& clock);

  absl::Status Write(int64_t step, const std::vector<Scalar>& scalars);

 private:
  EventFile(std::filesystem::path path, base::UniqueFd fd, const base::Clock& clock)
      : path_(std::move(path)), fd_(std::move(fd)), clock_(&clock) {}

  std::filesystem::path path_;
  base::UniqueFd fd_;
  const base::Clock* clock_;
};

}  // namespace tutti::train
