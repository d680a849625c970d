// ReadProcessUse asks the kernel what this process uses.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace tutti::base {

struct ProcessUse {
  double processor_seconds = 0;
  int64_t resident_bytes = 0;
  int64_t open_files = 0, most_files = 0;
  int64_t threads = 0;
  absl::Time started;
};
ProcessUse ReadProcessUse();

}  // namespace tutti::base
