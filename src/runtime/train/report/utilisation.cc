#include "runtime/train/report/utilisation.h"

#include <sys/resource.h>

namespace tutti::train {

absl::Duration ProcessorTime() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

void Utilisation::Begin(absl::Time now, absl::Duration busy) {
  since_ = now;
  busy_ = busy;
}

double Utilisation::Take(absl::Time now, absl::Duration busy) {
  const absl::Duration passed = now - since_, worked = busy - busy_;
  Begin(now, busy);
  return passed > absl::ZeroDuration() ? absl::FDivDuration(worked, passed) : 0;
}

}  // namespace tutti::train
