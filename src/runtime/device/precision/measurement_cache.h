// MeasurementCache keeps numbers that were measured on this machine for its next process: a file
// for each below ${XDG_CACHE_HOME:-~/.cache}/tutti. A file that is missing, damaged or cannot be
// written is no error: the number is measured again. The kMostKept newest are kept, as keys change
// with each version of the libraries.
//
// Thread-safe; any number of processes may read and keep the same number at once.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace tutti::device {

// Finds the folder by XDG_CACHE_HOME or HOME of `environment`; empty where neither is an absolute
// path.
std::filesystem::path CacheFolder(const std::map<std::string, std::string>& environment);

class MeasurementCache {
 public:
  // An empty folder: nothing is kept.
  explicit MeasurementCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Returns the positive number that was kept for `key`: what it measures, and all that it depends
  // on.
  std::optional<double> Find(absl::string_view key) const;
  static constexpr size_t kMostKept = 64;
  void Keep(absl::string_view key, double number) const;

 private:
  std::filesystem::path PathOf(absl::string_view key) const;

  const std::filesystem::path folder_;
};

}  // namespace tutti::device
