// StoreFollower reads what is logged in one store of MLflow's (file_store.h) while it is logged: of
// each metric's file the lines that have come since it last looked. Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "platform/mlflow/store_walk.h"

namespace tutti::mlflow {

class StoreFollower {
 public:
  // A store that hands out more than `most_bytes` is followed more coarsely from then on, by the
  // newest value of each metric at each look, and beyond twice as many bytes no more: the whole
  // history is in the job's results.
  explicit StoreFollower(std::filesystem::path store, uint64_t most_bytes = uint64_t{16} << 20)
      : store_(std::move(store)), most_bytes_(most_bytes) {}

  // Passes over what the store has now.
  void SkipWhatIsThere();

  // Returns the values that have come, as lines of a metrics file (docs/formats/metrics.md):
  //
  //   {"event": "metric", "name": "loss", "value": 0.25, "step": 3, "time": 1.7e9, "run": "3f2a…"}
  //
  // with "nested": true where the run is within another. A value that is not finite is NaN,
  // Infinity or -Infinity, as Python's json module writes them. Leaves out what MLflow measures by
  // itself (system/…). "" if there is nothing new, or no store.
  std::string NewLines();

 private:
  void ReadRun(const std::filesystem::path& run, Budget& budget, std::string& lines);

  const std::filesystem::path store_;
  const uint64_t most_bytes_;
  uint64_t handed_out_ = 0;
  std::map<std::filesystem::path, uint64_t> offsets_;  // by metric's file: up to here it was read
};

}  // namespace tutti::mlflow
