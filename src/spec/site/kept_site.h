// Reads a service's site for each submission, and its files only where one of them has changed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "spec/site/site.h"

namespace tutti::spec {

// Thread-safe.
class KeptSite {
 public:
  // `find_model`: Site::find_model.
  explicit KeptSite(std::filesystem::path home, FindModel find_model = nullptr)
      : home_(std::move(home)), find_model_(std::move(find_model)) {}

  // Returns what ReadSite(home) does. A file that was changed within the last second is read again:
  // another change of it may have the same time.
  absl::StatusOr<std::shared_ptr<const Site>> Read() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Tells one state of a file from another; all is 0 if the file is not there.
  struct Stamp {
    dev_t device = 0;
    ino_t number = 0;
    int64_t bytes = 0;
    absl::Time changed;
    friend bool operator==(const Stamp& a, const Stamp& b) {
      return a.device == b.device && a.number == b.number && a.bytes == b.bytes &&
             a.changed == b.changed;
    }
  };
  std::vector<Stamp> StampsNow() const;

  const std::filesystem::path home_;
  const FindModel find_model_;
  absl::Mutex mutex_;
  std::shared_ptr<const Site> site_ ABSL_GUARDED_BY(mutex_);
  std::vector<Stamp> stamps_ ABSL_GUARDED_BY(mutex_);  // of the files that it was read from
};

}  // namespace tutti::spec
